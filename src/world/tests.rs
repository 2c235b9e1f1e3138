use std::sync::LazyLock;

use nalgebra::{Isometry3, Point3, Vector3};

use super::*;

/// The room, which takes a moment to paint.
fn painted() -> &'static PaintedRoom {
    static ROOM: LazyLock<PaintedRoom> = LazyLock::new(PaintedRoom::new);
    &ROOM
}

pub(super) fn room() -> &'static Room {
    painted().room()
}

fn views(count: usize) -> Vec<Isometry3<f64>> {
    let view = |seed| {
        let config = WalkConfig {
            seed,
            turn: 2.0,
            style: Style::HandHeld,
        };
        Walk::new(room(), &config).next().unwrap()
    };
    (0..count as u64).map(view).collect()
}

fn seen(camera: &Camera, pose: &Isometry3<f64>) -> Image {
    let mut image = Image::default();
    render(painted(), camera, pose, &mut image);
    image
}

/// Sizes that tiles do not divide.
fn camera() -> Camera {
    Camera::from_field_of_view(107, 61, 75f64.to_radians())
}

#[test]
fn depth_ends_at_the_first_surface() {
    let camera = camera();
    for pose in views(24) {
        let image = seen(&camera, &pose);
        for (index, depth) in image.depth.iter().enumerate() {
            let (u, v) = (index as u32 % camera.width, index as u32 / camera.width);
            let ray = pose * camera.ray(f64::from(u), f64::from(v));
            let origin = Point3::from(pose.translation.vector);
            let end = origin + ray * f64::from(*depth);
            let off = room().distance(end);
            assert!(off < 1e-4, "pixel {u}, {v} ends {off} m from a surface");
            // No surface is nearer than `distance`, so that one step never passes one.
            let mut t = 0.0;
            for _ in 0..1000 {
                let step = room().distance(origin + ray * t) / ray.norm();
                t += step;
                // Rays that graze an edge come near, but not so near.
                if step < 1e-6 {
                    break;
                }
            }
            assert!(
                t > f64::from(*depth) - 0.02,
                "pixel {u}, {v} passes a surface at {t} m and ends at {depth} m"
            );
        }
    }
}

#[test]
fn the_same_view_is_the_same_picture_whatever_was_in_the_buffers() {
    let camera = camera();
    let views = views(2);
    let mut image = seen(&Camera::from_field_of_view(150, 90, 1.0), &views[1]);
    render(painted(), &camera, &views[0], &mut image);
    assert_eq!(image, seen(&camera, &views[0]));
    assert_ne!(image, seen(&camera, &views[1]));
    assert_eq!(image.rgb.len(), 107 * 61 * 3);
    assert_eq!(image.depth.len(), 107 * 61);
}

/// Looks at a point such that pixel (8, 8) of a 16 by 16 picture shows it.
fn look_at(from: Point3<f64>, at: Point3<f64>) -> (Camera, Isometry3<f64>) {
    let camera = Camera::from_field_of_view(16, 16, 3f64.to_radians());
    let pose = Isometry3::face_towards(&from, &at, &-Vector3::z());
    (camera, pose)
}

#[test]
fn a_place_looks_the_same_from_everywhere() {
    let camera = camera();
    let views = views(30);
    let (mut compared, mut alike) = (0, 0);
    for pair in views.windows(2) {
        let image = seen(&camera, &pair[0]);
        for index in (0..image.depth.len()).step_by(97) {
            let (u, v) = (index as u32 % camera.width, index as u32 / camera.width);
            let ray = camera.ray(f64::from(u), f64::from(v)) * f64::from(image.depth[index]);
            let place = pair[0] * Point3::from(ray);
            let colours: Vec<[u8; 3]> = pair
                .iter()
                .filter_map(|pose| {
                    let from = Point3::from(pose.translation.vector);
                    let (camera, pose) = look_at(from, place);
                    let image = seen(&camera, &pose);
                    let visible =
                        (f64::from(image.depth[8 * 16 + 8]) - (place - from).norm()).abs();
                    let rgb = &image.rgb[3 * (8 * 16 + 8)..][..3];
                    (visible < 1e-3).then(|| [rgb[0], rgb[1], rgb[2]])
                })
                .collect();
            if let [a, b] = colours.as_slice() {
                compared += 1;
                let near = a.iter().zip(b).all(|(a, b)| a.abs_diff(*b) <= 10);
                alike += usize::from(near);
            }
        }
    }
    assert!(compared > 500, "only {compared} places are seen twice");
    // At the edges of patterns and things the two pictures average over different places.
    assert!(
        alike * 100 > compared * 93,
        "{alike} of {compared} places are alike"
    );
}

#[test]
fn no_view_is_dull() {
    let camera = camera();
    for (index, pose) in views(40).iter().enumerate() {
        let image = seen(&camera, pose);
        for channel in 0..3 {
            let values = || {
                image
                    .rgb
                    .iter()
                    .skip(channel)
                    .step_by(3)
                    .copied()
                    .map(f64::from)
            };
            let count = values().count() as f64;
            let mean = values().sum::<f64>() / count;
            let deviation = (values().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt();
            assert!(
                deviation > 20.0 && (40.0..215.0).contains(&mean),
                "view {index}, channel {channel}: {mean} with deviation {deviation}"
            );
        }
    }
}

#[test]
fn distances_are_those_of_the_room() {
    // Above the rug, and beside the table's top, whose edge is at x = -2.35 and z from 0.7 to 0.76.
    for (point, expected) in [
        ([0.0, 0.0, 0.3], 0.3),
        ([-2.15, -1.0, 0.73], 0.2),
        ([-2.05, -1.0, 1.16], 0.5),
        ([1.8, 1.0, 2.5], 0.3),
        ([3.0, 0.25, 1.0], 0.0),
    ] {
        let found = room().distance(Point3::from(point));
        assert!((found - expected).abs() < 1e-12, "{point:?}: {found}");
    }
    assert!(room().clearance(2.62, -2.12) < 0.0, "in the column");
    assert!(room().clearance(3.5, 0.0) < 0.0, "behind the wall");
}
