use super::*;
use nalgebra::{Matrix3, Vector3};
use ndarray::{Array3, Array4, ArrayD, Ix3, Ix4};
use ndarray_npy::NpzReader;
use proptest::prelude::*;
use std::fs::File;
use std::path::Path;

fn size() -> NetworkSize {
    NetworkSize::new(42, 84).unwrap()
}

fn golden() -> NpzReader<File> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/kf1.npz");
    NpzReader::new(File::open(path).unwrap()).unwrap()
}

fn read(npz: &mut NpzReader<File>, name: &str) -> ArrayD<f32> {
    npz.by_name(name).unwrap()
}

fn poses(npz: &mut NpzReader<File>) -> Vec<[f32; 9]> {
    let encoded = read(npz, "pose_enc");
    let encoded = encoded.as_slice().unwrap();
    encoded.as_chunks::<9>().0.to_vec()
}

#[test]
fn poses_and_intrinsics_are_the_references() {
    let mut npz = golden();
    let camera_to_world: Array3<f32> = read(&mut npz, "c2w").into_dimensionality::<Ix3>().unwrap();
    let intrinsics: Array3<f32> = read(&mut npz, "intrinsics")
        .into_dimensionality::<Ix3>()
        .unwrap();
    let poses = poses(&mut npz);
    assert_eq!(poses.len(), 14);
    for (frame, pose) in poses.iter().enumerate() {
        let (pose, k) = decode_pose(pose, size()).unwrap();
        let matrix = pose.to_homogeneous();
        for row in 0..3 {
            for column in 0..4 {
                let expected = f64::from(camera_to_world[[frame, row, column]]);
                assert!(
                    (matrix[(row, column)] - expected).abs() < 1e-6,
                    "{frame} {row} {column}"
                );
            }
        }
        let expected = intrinsics.index_axis(ndarray::Axis(0), frame);
        let found = [[k.fx, 0.0, k.cx], [0.0, k.fy, k.cy], [0.0, 0.0, 1.0]];
        for (row, found) in found.iter().enumerate() {
            for (column, &found) in found.iter().enumerate() {
                let expected = f64::from(expected[[row, column]]);
                assert!(
                    (found - expected).abs() <= 1e-5 * expected.abs(),
                    "{frame} {row} {column}"
                );
            }
        }
    }
}

#[test]
fn points_are_the_references() {
    let mut npz = golden();
    let depth: Array4<f32> = read(&mut npz, "depth")
        .into_dimensionality::<Ix4>()
        .unwrap();
    let points: Array3<f32> = read(&mut npz, "depth_points_world_frame_last")
        .into_dimensionality::<Ix3>()
        .unwrap();
    let (pose, k) = decode_pose(poses(&mut npz).last().unwrap(), size()).unwrap();
    let last = depth.shape()[0] - 1;
    for v in 0..42 {
        for u in 0..84 {
            let depth = f64::from(depth[[last, v, u, 0]]);
            let point = pose * unproject(u as f64, v as f64, depth, &k);
            for axis in 0..3 {
                let expected = f64::from(points[[v, u, axis]]);
                assert!(
                    (point[axis] - expected).abs() < 5e-6,
                    "{u} {v} {point} {expected}"
                );
            }
        }
    }
}

#[test]
fn the_quaternion_is_scalar_last_and_turns_camera_axes_into_the_worlds() {
    let half = std::f32::consts::FRAC_1_SQRT_2;
    // A quarter turn about y (down): the camera looks along the world's x.
    let (pose, _) = decode_pose(&[1.0, 2.0, 3.0, 0.0, half, 0.0, half, 1.0, 1.0], size()).unwrap();
    let ahead = pose * Point3::new(0.0, 0.0, 2.0);
    assert!(
        (ahead - Point3::new(3.0, 2.0, 3.0)).norm() < 1e-6,
        "{ahead}"
    );
}

#[test]
fn what_is_no_pose_is_refused() {
    let good = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0];
    let with = |index: usize, value: f32| {
        let mut pose: [f32; 9] = good;
        pose[index] = value;
        decode_pose(&pose, size()).map_err(|e| e.reason())
    };
    assert!(with(0, 5.0).is_ok());
    for index in 0..9 {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(with(index, value).unwrap_err(), "pose_not_finite");
        }
    }
    assert_eq!(with(6, 0.0).unwrap_err(), "zero_quaternion");
    for fov in [0.0, -1.0, std::f32::consts::PI + 1e-6, 7.0] {
        assert_eq!(with(7, fov).unwrap_err(), "field_of_view");
        assert_eq!(with(8, fov).unwrap_err(), "field_of_view");
    }
}

proptest! {
    #[test]
    fn a_quaternion_of_any_length_is_the_same_rotation(
        q in prop::array::uniform4(-1.0f32..1.0), length in 1e-3f32..1e3,
    ) {
        prop_assume!(q.iter().map(|c| c * c).sum::<f32>() > 1e-4);
        let encoded = |s: f32| [0.0, 0.0, 0.0, q[0] * s, q[1] * s, q[2] * s, q[3] * s, 1.0, 1.0];
        let (pose, _) = decode_pose(&encoded(1.0), size()).unwrap();
        let (scaled, _) = decode_pose(&encoded(length), size()).unwrap();
        let rotation: Matrix3<f64> = pose.rotation.to_rotation_matrix().into_inner();
        prop_assert!((rotation - scaled.rotation.to_rotation_matrix().into_inner()).norm() < 1e-6);
        prop_assert!((rotation * rotation.transpose() - Matrix3::identity()).norm() < 1e-12);
        prop_assert!((rotation.determinant() - 1.0).abs() < 1e-12);
        // R = I + 2/|q|² [[-(y²+z²), xy-zw, …]], the reference's formula, in one entry.
        let [x, y, z, w] = q.map(f64::from);
        let expected = 2.0 * (x * y - z * w) / (x * x + y * y + z * z + w * w);
        prop_assert!((rotation[(0, 1)] - expected).abs() < 1e-9);
    }

    #[test]
    fn a_point_projects_back_onto_its_pixel(
        u in 0.0..84.0f64, v in 0.0..42.0f64, depth in 0.01..100.0f64, fov in prop::array::uniform2(0.2..2.8f64),
    ) {
        let k = Intrinsics::from_field_of_view(fov[0], fov[1], size());
        let point = unproject(u, v, depth, &k);
        prop_assert_eq!(point.z, depth);
        prop_assert!((point.x / point.z * k.fx + k.cx - u).abs() < 1e-9);
        prop_assert!((point.y / point.z * k.fy + k.cy - v).abs() < 1e-9);
        // The picture's right edge lies half the field of view from its middle.
        let edge = unproject(84.0, 21.0, 1.0, &k);
        prop_assert!((edge.coords.angle(&Vector3::z()) - fov[1] / 2.0).abs() < 1e-9);
    }
}
