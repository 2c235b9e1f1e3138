//! How fast the network runs, against what the machine's matrix product reaches in the same run.
//!
//! Throughput is in floating-point operations (criterion prints them as elements): the step is as good as the share of
//! the matrix product's rate that it reaches.

#[path = "support/operations.rs"]
mod operations;
mod support;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lingbot_map::camera::NetworkSize;
use lingbot_map::network::checkpoint::RandomWeights;
use lingbot_map::network::config::NetworkConfig;
use lingbot_map::network::export::{ExportOptions, export};
use lingbot_map::network::onnx::{Dim, ElementType, GraphBuilder, WeightFile};
use lingbot_map::runtime::{Binding, Graph, Library, RuntimeOptions};
use lingbot_map::stream::{GctStream, KeyframeInterval, StreamConfig};
use operations::step_operations;
use support::{medium_network, noise, peak_memory_gb};

/// Edge of the square matrices of the baseline: large enough to be bound by arithmetic, as the network's layers are.
const EDGE: usize = 2048;

fn matrix_product(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let mut ignore = |_| ();
    let mut weights = WeightFile::create(&folder.path().join("weights.data"), &mut ignore).unwrap();
    let values: Vec<f32> = (0..EDGE * EDGE)
        .map(|i| (i % 251) as f32 / 251.0 - 0.5)
        .collect();
    let mut builder = GraphBuilder::new("product", &mut weights);
    let shape = [Dim::Fixed(EDGE), Dim::Fixed(EDGE)];
    let a = builder.input("a", ElementType::F32, &shape);
    let b = builder.weight("b", &[EDGE, EDGE], &values).unwrap();
    let bias = builder.weight("bias", &[EDGE], &values[..EDGE]).unwrap();
    let product = builder.gemm(&a, &b, &bias);
    builder.output(&product, "c", ElementType::F32, &shape);
    let path = folder.path().join("product.onnx");
    std::fs::write(&path, builder.finish()).unwrap();
    weights.finish().unwrap();

    let library = Library::load(None).unwrap();
    let mut graph = Graph::load(&library, &path, &RuntimeOptions::default()).unwrap();
    let mut c = vec![0.0; EDGE * EDGE];
    let mut group = criterion.benchmark_group("rate");
    group
        .sample_size(20)
        .throughput(Throughput::Elements(2 * (EDGE as u64).pow(3)));
    group.bench_function("matrix product", |bencher| {
        bencher.iter(|| {
            let shape = [EDGE, EDGE];
            let mut bindings = [
                Binding::F32 {
                    name: "a",
                    shape: &shape,
                    data: &values,
                },
                Binding::Output {
                    name: "c",
                    shape: &shape,
                    data: &mut c,
                },
            ];
            graph.run(&mut bindings).unwrap();
            black_box(c[0])
        })
    });
    group.finish();
}

fn medium_step(criterion: &mut Criterion) {
    let (network, size) = (medium_network(), NetworkSize::new(378, 518).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let options = ExportOptions {
        size,
        camera_num_iterations: network.cam_iters,
    };
    export(
        &RandomWeights::new(&network, 1),
        &network,
        &options,
        folder.path(),
        &mut |_| (),
    )
    .unwrap();
    let config = StreamConfig {
        num_scale_frames: 4,
        kv_cache_sliding_window: 16,
        ..StreamConfig::default()
    };
    let mut stream = GctStream::open(folder.path(), &RuntimeOptions::default(), config).unwrap();
    let mut frame = 0;
    let mut push = |stream: &mut GctStream| {
        frame += 1;
        stream.push(&noise(size, frame)).unwrap().len()
    };
    for _ in 0..20 {
        push(&mut stream);
    }
    let operations = step_operations(
        &network,
        size,
        stream.token_cache().valid,
        stream.camera_cache().valid,
    );
    let mut group = criterion.benchmark_group("rate");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(45))
        .throughput(Throughput::Elements(operations));
    group.bench_function("step, C=384, 518x378, full window of 16 + 4", |bencher| {
        bencher.iter(|| black_box(push(&mut stream)))
    });
    group.finish();
    println!("peak memory of this process: {:.2} GB", peak_memory_gb());
}

/// The same step over arenas of very different capacity: writing in place costs the rows written, not the arena.
fn arena_capacity(criterion: &mut Criterion) {
    let network = NetworkConfig {
        depth: 4,
        selected: [0, 1, 2, 3],
        dino_depth: 1,
        ..medium_network()
    };
    let size = NetworkSize::new(84, 112).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = ExportOptions {
        size,
        camera_num_iterations: 1,
    };
    export(
        &RandomWeights::new(&network, 1),
        &network,
        &options,
        folder.path(),
        &mut |_| (),
    )
    .unwrap();
    let mut group = criterion.benchmark_group("arena capacity");
    for window in [8, 4096] {
        // A second frame that is not stored leaves the cache as it is, so every iteration does the same.
        let config = StreamConfig {
            num_scale_frames: 2,
            kv_cache_sliding_window: window,
            keyframe_interval: KeyframeInterval::Every(usize::from(u16::MAX)),
            ..StreamConfig::default()
        };
        let mut stream =
            GctStream::open(folder.path(), &RuntimeOptions::default(), config).unwrap();
        (0..3).for_each(|i| drop(stream.push(&noise(size, i)).unwrap()));
        let megabytes = stream.token_cache().bytes / 1_000_000;
        let image = noise(size, 3);
        group.bench_function(format!("step, arenas of {megabytes} MB"), |bencher| {
            bencher.iter(|| black_box(stream.push(&image).unwrap().len()))
        });
    }
    group.finish();
}

criterion_group!(benches, matrix_product, arena_capacity, medium_step);
criterion_main!(benches);
