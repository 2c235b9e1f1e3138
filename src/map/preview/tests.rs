use super::*;
use crate::camera::Stamp;
use image::Rgb;
use nalgebra::Isometry3;
use proptest::prelude::*;

const FLOOR: [u8; 3] = [90, 160, 90];
const CEILING: [u8; 3] = [250, 0, 250];
const WALL: [u8; 3] = [160, 90, 90];
const BLOCK: [u8; 3] = [60, 60, 220];

/// A room of 4 x 3 x 2.4 with a ceiling and a block in the right far corner, seen by a camera that walks forward.
fn room() -> (Vec<MapPoint>, Trajectory) {
    let mut points = Vec::new();
    let mut add = |x: f32, y: f32, z: f32, color| {
        points.push(MapPoint {
            position: [x, y, z],
            color,
            confidence: 2.0,
        });
    };
    let steps = |length: f32| (0..=(length / 0.02) as u32).map(|i| i as f32 * 0.02);
    for x in steps(4.0) {
        for z in steps(3.0) {
            add(x - 2.0, 1.2, z, FLOOR);
            add(x - 2.0, -1.2, z, CEILING);
        }
        for y in steps(2.4) {
            add(x - 2.0, y - 1.2, 0.0, WALL);
            add(x - 2.0, y - 1.2, 3.0, WALL);
        }
    }
    for z in steps(3.0) {
        for y in steps(2.4) {
            add(-2.0, y - 1.2, z, WALL);
            add(2.0, y - 1.2, z, WALL);
        }
    }
    for x in steps(1.0) {
        for z in steps(1.0) {
            add(1.0 + x, 0.4, 2.0 + z, BLOCK);
        }
    }
    let mut trajectory = Trajectory::new();
    for i in 0..10 {
        let pose = Isometry3::translation(-0.5, 0.0, 0.5 + f64::from(i) * 0.15);
        trajectory.push(Stamp(i64::from(i)), pose);
    }
    (points, trajectory)
}

fn share(image: &RgbImage, panel: u32, is: impl Fn(Rgb<u8>) -> bool) -> f64 {
    let half = image.width() / 2;
    let pixels = image
        .enumerate_pixels()
        .filter(|(x, _, _)| x / half == panel);
    let found = pixels.filter(|(_, _, p)| is(**p)).count();
    found as f64 / f64::from(half * image.height())
}

/// The same hue as `color`, at any light.
fn like(color: [u8; 3]) -> impl Fn(Rgb<u8>) -> bool {
    move |pixel| {
        let sum = |c: [u8; 3]| c.iter().map(|&v| f64::from(v)).sum::<f64>();
        let near = |(&a, b): (&u8, u8)| {
            (f64::from(a) / sum(pixel.0) - f64::from(b) / sum(color)).abs() < 0.03
        };
        sum(pixel.0) > 100.0 && pixel.0.iter().zip(color).all(near)
    }
}

#[test]
fn the_room_is_open_to_the_viewer() {
    let (points, trajectory) = room();
    let image = render(
        &points,
        &trajectory,
        PreviewSize {
            width: 800,
            height: 400,
        },
    );
    for panel in 0..2 {
        assert!(share(&image, panel, like(FLOOR)) > 0.1, "panel {panel}");
        assert!(share(&image, panel, like(BLOCK)) > 0.01, "panel {panel}");
        assert!(share(&image, panel, like(CEILING)) < 0.001, "panel {panel}");
    }
    assert!(
        share(&image, 0, like(WALL)) > 0.05,
        "the far walls are there"
    );
    assert!(share(&image, 1, like(WALL)) < share(&image, 1, like(FLOOR)));
}

#[test]
fn forward_is_up_and_right_is_right_in_the_view_from_above() {
    let (points, trajectory) = room();
    let image = render(
        &points,
        &trajectory,
        PreviewSize {
            width: 800,
            height: 400,
        },
    );
    let of = |is: &dyn Fn(Rgb<u8>) -> bool| {
        let pixels = image
            .enumerate_pixels()
            .filter(|(x, _, p)| *x >= 400 && is(**p));
        let (n, x, y) = pixels.fold((0.0, 0.0, 0.0), |(n, sx, sy), (x, y, _)| {
            (n + 1.0, sx + f64::from(x), sy + f64::from(y))
        });
        (x / n, y / n)
    };
    let (block, floor) = (of(&like(BLOCK)), of(&like(FLOOR)));
    assert!(
        block.0 > floor.0 + 30.0 && block.1 < floor.1 - 30.0,
        "{block:?} {floor:?}"
    );
    let start = of(&|p: Rgb<u8>| p.0 == [40, 200, 80]);
    let end = of(&|p: Rgb<u8>| p.0 == [230, 50, 50]);
    assert!(
        (start.0 - end.0).abs() < 3.0 && end.1 < start.1 - 50.0,
        "{start:?} {end:?}"
    );
}

#[test]
fn strays_do_not_shrink_the_room() {
    let (mut points, trajectory) = room();
    let size = PreviewSize {
        width: 400,
        height: 200,
    };
    let clean = share(&render(&points, &trajectory, size), 1, like(FLOOR));
    for i in 0..50 {
        let far = 1000.0 * (i as f32).sin();
        points.push(MapPoint {
            position: [far, -far, far],
            color: [9; 3],
            confidence: 2.0,
        });
    }
    let with_strays = share(&render(&points, &trajectory, size), 1, like(FLOOR));
    assert!(
        (with_strays / clean - 1.0).abs() < 0.1,
        "{clean} {with_strays}"
    );
}

#[test]
fn the_file_is_a_png_of_the_size_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("preview.png");
    let (points, trajectory) = room();
    write_preview(
        &path,
        &points,
        &trajectory,
        PreviewSize {
            width: 300,
            height: 150,
        },
    )
    .unwrap();
    assert_eq!(
        image::open(&path).unwrap().into_rgb8().dimensions(),
        (300, 150)
    );
    let error = write_preview(
        &folder.path().join("no/p.png"),
        &[],
        &trajectory,
        PreviewSize::default(),
    );
    assert!(error.is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_map_has_a_picture(
        points in prop::collection::vec(prop::array::uniform3(prop_oneof![
            3 => -5.0f32..5.0, 1 => Just(0.0f32), 1 => any::<f32>()]), 0..60),
        path in prop::collection::vec(prop::array::uniform3(prop_oneof![
            3 => -5.0f64..5.0, 1 => Just(0.0f64), 1 => any::<f64>()]), 0..5),
        width in 0u32..300, height in 0u32..300,
    ) {
        let point = |position| MapPoint { position, color: [200; 3], confidence: 2.0 };
        let points: Vec<_> = points.into_iter().map(point).collect();
        let mut trajectory = Trajectory::new();
        for [x, y, z] in path {
            trajectory.push(Stamp(0), Isometry3::translation(x, y, z));
        }
        let image = render(&points, &trajectory, PreviewSize { width, height });
        prop_assert_eq!(image.dimensions(), (width.max(64), height.max(64)));
    }
}
