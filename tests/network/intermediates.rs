//! Compares values inside the graphs with the reference implementation's, so that a fault is found where it is.

use std::fs;
use std::path::Path;

use crate::common::{Reference, export_golden, frames, golden, golden_config, largest_error};
use lingbot_map::network::dpt_head::{DEPTH, DEPTH_CONF};
use lingbot_map::network::inputs::LEVELS;
use lingbot_map::network::manifest::{DEPTH_GRAPH, Manifest, STEP_GRAPH};
use lingbot_map::network::onnx::proto::{
    DataType, ModelProto, TensorTypeProto, TypeProto, ValueInfoProto,
};
use lingbot_map::runtime::{Binding, Graph, Library, RuntimeOptions};
use lingbot_map::stream::{FrameRole, StepRunner, StreamConfig};
use ndarray::{ArrayD, Axis};
use prost::Message;

/// Twice the float32 rounding seen in values of this size.
const BOUND: f32 = 1e-5;

/// (name in the reference, name in the graph, whether the graph keeps the frames' axis apart)
fn step_taps() -> Vec<(String, String, bool)> {
    let config = golden_config();
    let mut taps: Vec<(String, String, bool)> = vec![
        ("dino_conv_tokens".into(), "encoder.patches".into(), false),
        ("dino_block0".into(), "encoder.block_0".into(), false),
        ("dino_patchtokens".into(), "encoder.tokens".into(), true),
        (
            "camera_token_norm".into(),
            "camera_head.token_norm".into(),
            false,
        ),
    ];
    for layer in 0..config.depth {
        for kind in ["frame_block", "global_block"] {
            taps.push((
                format!("{kind}{layer}"),
                format!("aggregator.{kind}_{layer}"),
                false,
            ));
        }
    }
    for iteration in 0..config.cam_iters {
        for block in 0..config.cam_depth {
            let name = format!("camera_head.trunk_{iteration}_{block}");
            taps.push((format!("camera_trunk{block}_iter{iteration}"), name, false));
        }
        taps.push((
            format!("camera_delta_iter{iteration}"),
            format!("camera_head.delta_{iteration}"),
            false,
        ));
    }
    taps
}

const DEPTH_TAPS: [(&str, &str); 9] = [
    // The maps carry the position embedding, which the third level shows unresized.
    ("depth_resize0", "depth_head.resize_0"),
    ("depth_resize1", "depth_head.resize_1"),
    ("depth_resize3", "depth_head.resize_3"),
    ("depth_refinenet4", "depth_head.refinenet_4"),
    ("depth_refinenet3", "depth_head.refinenet_3"),
    ("depth_refinenet2", "depth_head.refinenet_2"),
    ("depth_refinenet1", "depth_head.refinenet_1"),
    ("depth_prelogits", "depth_head.prelogits"),
    ("depth_resize2", "depth_head.resize_2"),
];

/// Makes values inside a graph its outputs.
fn expose<'a>(path: &Path, names: impl IntoIterator<Item = &'a str>) {
    let mut model = ModelProto::decode(&*fs::read(path).unwrap()).unwrap();
    let graph = model.graph.as_mut().unwrap();
    for name in names {
        assert!(
            graph
                .node
                .iter()
                .any(|node| node.output.iter().any(|output| output == name)),
            "no value {name}"
        );
        let tensor_type = Some(TensorTypeProto {
            elem_type: DataType::Float as i32,
            shape: None,
        });
        graph.output.push(ValueInfoProto {
            name: name.into(),
            r#type: Some(TypeProto { tensor_type }),
        });
    }
    fs::write(path, model.encode_to_vec()).unwrap();
}

struct Tap {
    label: String,
    name: String,
    expected: ArrayD<f32>,
    shape: Vec<usize>,
    found: Vec<f32>,
}

impl Tap {
    fn binding(&mut self) -> Binding<'_> {
        Binding::Output {
            name: &self.name,
            shape: &self.shape,
            data: &mut self.found,
        }
    }

    /// The error, printed with the name.
    fn error(&self) -> f32 {
        let error = largest_error(&self.found, self.expected.iter());
        println!("{}: {error:.2e}", self.label);
        error
    }
}

fn tap(
    reference: &mut Reference,
    call: &str,
    golden_name: &str,
    name: &str,
    keep_axes: bool,
) -> Tap {
    let expected = reference.array(&format!("{call}.{golden_name}"));
    let width = *expected.shape().last().unwrap();
    let shape = if keep_axes {
        expected.shape().to_vec()
    } else {
        vec![expected.len() / width, width]
    };
    Tap {
        label: format!("{call}.{golden_name}"),
        name: name.into(),
        found: vec![0.0; expected.len()],
        expected,
        shape,
    }
}

/// All stages in order; the first one that is off is where the fault is.
fn assert_all_close(errors: Vec<(String, f32)>) {
    let first = errors.iter().find(|(_, error)| !error.le(&BOUND));
    assert!(first.is_none(), "the first stage that differs: {first:?}");
}

#[test]
fn every_stage_of_the_scale_call_and_of_an_evicting_step() {
    let folder = export_golden(42, 84);
    let manifest = Manifest::read(folder.path()).unwrap();
    let taps = step_taps();
    expose(
        &folder.path().join(STEP_GRAPH),
        taps.iter().map(|(_, name, _)| name.as_str()),
    );
    expose(
        &folder.path().join(DEPTH_GRAPH),
        DEPTH_TAPS.map(|(_, name)| name),
    );

    let options = RuntimeOptions::default();
    let library = Library::load(None).unwrap();
    let config = StreamConfig {
        num_scale_frames: 3,
        kv_cache_sliding_window: golden_config().window,
        ..StreamConfig::default()
    };
    let mut runner =
        StepRunner::open(&library, folder.path(), &manifest, &options, &config).unwrap();
    let mut depth = Graph::load(&library, &folder.path().join(DEPTH_GRAPH), &options).unwrap();
    let mut reference = Reference::open("kf1_intermediates.npz");
    let images = frames(&golden().join("frames_A"), 10);
    let mut errors = Vec::new();

    let scale: Vec<u8> = images[..3]
        .iter()
        .flat_map(|image| image.as_raw())
        .copied()
        .collect();
    for call in 0..8 {
        let recorded = call == 0 || call == 7;
        let mut found: Vec<Tap> = Vec::new();
        if recorded {
            found.extend(taps.iter().map(|(golden, name, keep)| {
                tap(&mut reference, &format!("call{call}"), golden, name, *keep)
            }));
        }
        let bindings = found.iter_mut().map(Tap::binding).collect();
        match call {
            0 => runner.scale_call(&scale, 3, bindings).unwrap(),
            _ => runner
                .step(images[2 + call].as_raw(), FrameRole::Keyframe, bindings)
                .unwrap(),
        }
        errors.extend(found.iter().map(|tap| (tap.label.clone(), tap.error())));
        if recorded {
            for frame in 0..if call == 0 { 3 } else { 1 } {
                errors.extend(depth_errors(
                    &mut depth,
                    &runner,
                    &mut reference,
                    &format!("call{call}"),
                    frame,
                ));
            }
        }
    }
    assert_all_close(errors);
}

fn depth_errors(
    graph: &mut Graph,
    runner: &StepRunner,
    reference: &mut Reference,
    call: &str,
    frame: usize,
) -> Vec<(String, f32)> {
    let mut taps: Vec<Tap> = DEPTH_TAPS
        .iter()
        .map(|(golden, name)| {
            let expected = reference
                .array(&format!("{call}.{golden}"))
                .index_axis(Axis(0), frame)
                .to_owned();
            let shape = [&[1], expected.shape()].concat();
            Tap {
                label: format!("{call}.{golden}[{frame}]"),
                name: (*name).into(),
                found: vec![0.0; expected.len()],
                expected,
                shape,
            }
        })
        .collect();
    let levels = runner.levels(frame);
    let level_shape = [1, 24, levels[0].len() / 24];
    let (mut depth, mut conf) = (vec![0.0; 42 * 84], vec![0.0; 42 * 84]);
    let mut bindings: Vec<Binding> = LEVELS
        .iter()
        .zip(levels)
        .map(|(name, data)| Binding::F32 {
            name,
            shape: &level_shape,
            data,
        })
        .collect();
    bindings.push(Binding::Output {
        name: DEPTH,
        shape: &[1, 42, 84],
        data: &mut depth,
    });
    bindings.push(Binding::Output {
        name: DEPTH_CONF,
        shape: &[1, 42, 84],
        data: &mut conf,
    });
    bindings.extend(taps.iter_mut().map(Tap::binding));
    graph.run(&mut bindings).unwrap();
    drop(bindings);
    taps.iter()
        .map(|tap| (tap.label.clone(), tap.error()))
        .collect()
}
