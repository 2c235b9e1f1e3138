//! What a frame of the computed room costs, and the room itself.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lingbot_map::world::{Camera, Image, PaintedRoom, Room, Style, Walk, WalkConfig, render};

fn frames(c: &mut Criterion) {
    let painted = PaintedRoom::new();
    let config = WalkConfig {
        seed: 1,
        turn: 150f64.to_radians(),
        style: Style::HandHeld,
    };
    // Far enough apart to show all parts of the room.
    let poses: Vec<_> = Walk::new(painted.room(), &config)
        .step_by(12)
        .take(64)
        .collect();
    let mut group = c.benchmark_group("world");
    for (width, height) in [(112, 84), (640, 480), (1280, 720)] {
        let camera = Camera::from_field_of_view(width, height, 75f64.to_radians());
        let mut image = Image::default();
        let mut next = poses.iter().cycle();
        group.throughput(Throughput::Elements(u64::from(width * height)));
        group.bench_function(format!("render {width}x{height}"), |b| {
            b.iter(|| {
                if let Some(pose) = next.next() {
                    render(&painted, &camera, black_box(pose), &mut image);
                }
            })
        });
    }
    group.finish();
}

fn preparation(c: &mut Criterion) {
    let mut group = c.benchmark_group("world");
    group.sample_size(10);
    group.bench_function("the room", |b| b.iter(PaintedRoom::new));
    let room = Room::new();
    let config = WalkConfig {
        seed: 1,
        turn: 150f64.to_radians(),
        style: Style::HandHeld,
    };
    group.bench_function("a walk of 300 frames", |b| {
        b.iter(|| Walk::new(&room, black_box(&config)).take(300).count())
    });
}

criterion_group!(benches, frames, preparation);
criterion_main!(benches);
