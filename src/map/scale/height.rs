use std::collections::VecDeque;

use nalgebra::{Matrix3, Point3, Vector3};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::Estimate;
use crate::map::MapPoint;

/// Frames whose heights are compared.
const WINDOW: usize = 40;
const LEAST: usize = 15;
/// Planes that are tried in a frame.
const TRIALS: usize = 100;
/// Least-squares fits to the points that lie on the plane, after the best one tried.
const REFINEMENTS: usize = 5;
/// Points of a frame that are looked at.
const SAMPLES: usize = 2000;
/// How far a floor may lean, as the cosine of the angle: cameras are not quite upright. 15 degrees.
const UPRIGHT: f64 = 0.966;
/// Points of the floor lie this close to it, as a share of the camera's height.
const CLOSE: f64 = 0.03;
/// Of the points below the camera's height, the share that a floor has at least.
const SHARE: f64 = 0.15;
/// Of all points, the share that may lie below a floor: reflections and noise.
const BELOW: f64 = 0.05;

/// Scale from the camera's known height above the floor: in each frame the dominant plane below the camera that is about
/// level and has nothing below it; over the frames the median of its distance.
pub struct HeightScale {
    metres: f64,
    heights: VecDeque<f64>,
    random: Pcg32,
}

impl HeightScale {
    pub fn new(metres: f64) -> Self {
        Self {
            metres,
            heights: VecDeque::new(),
            random: Pcg32::seed_from_u64(0),
        }
    }

    pub fn see(
        &mut self,
        points: &[MapPoint],
        camera: &Point3<f64>,
        up: &Vector3<f64>,
    ) -> Option<Estimate> {
        let height = self.height_above_floor(points, camera, up)?;
        if self.heights.len() == WINDOW {
            self.heights.pop_front();
        }
        self.heights.push_back(height);
        if self.heights.len() < LEAST {
            return None;
        }
        let mut sorted: Vec<f64> = self.heights.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let median = sorted[sorted.len() / 2];
        let mut distances: Vec<f64> = sorted.iter().map(|h| (h - median).abs()).collect();
        distances.sort_by(f64::total_cmp);
        // Of a normal distribution, by the median distance from the median. Neighbouring frames err alike: the mean of
        // many is taken for as sure as that of a few.
        let deviation = 1.4826 * distances[distances.len() / 2] / median;
        Some(Estimate {
            metres_per_unit: self.metres / median,
            uncertainty: deviation / (LEAST as f64).sqrt(),
        })
    }

    /// In the map's unit; `None` where no floor is seen.
    fn height_above_floor(
        &mut self,
        points: &[MapPoint],
        camera: &Point3<f64>,
        up: &Vector3<f64>,
    ) -> Option<f64> {
        let stride = points.len().div_ceil(SAMPLES).max(1);
        let seen: Vec<Vector3<f64>> = (points.iter().step_by(stride))
            .map(|point| Point3::from(point.position).cast::<f64>() - camera)
            .collect();
        let below: Vec<&Vector3<f64>> = seen.iter().filter(|p| p.dot(up) < 0.0).collect();
        if below.len() < 50 {
            return None;
        }
        let mut best = None::<(usize, Vector3<f64>, f64)>;
        for _ in 0..TRIALS {
            let mut pick = || below[self.random.next_u32() as usize % below.len()];
            let (a, b, c) = (pick(), pick(), pick());
            let Some(normal) = (b - a).cross(&(c - a)).try_normalize(1e-12) else {
                continue;
            };
            let normal = if normal.dot(up) < 0.0 {
                -normal
            } else {
                normal
            };
            let height = -normal.dot(a);
            if normal.dot(up) < UPRIGHT || height <= 0.0 {
                continue;
            }
            let close = CLOSE * height;
            let over = |p: &Vector3<f64>| normal.dot(p) + height;
            let on = below.iter().filter(|p| over(p).abs() < close).count();
            let under = seen.iter().filter(|p| over(p) < -2.0 * close).count();
            let is_floor = on as f64 > SHARE * below.len() as f64
                && (under as f64) < BELOW * seen.len() as f64;
            if is_floor && best.is_none_or(|(most, ..)| on > most) {
                best = Some((on, normal, height));
            }
        }
        let (_, mut normal, mut height) = best?;
        for _ in 0..REFINEMENTS {
            let close = CLOSE * height;
            let on = below
                .iter()
                .filter(|p| (normal.dot(p) + height).abs() < close);
            let on: Vec<&Vector3<f64>> = on.copied().collect();
            let mean = on.iter().copied().sum::<Vector3<f64>>() / on.len().max(1) as f64;
            let spread: Matrix3<f64> = on
                .iter()
                .map(|p| (*p - mean) * (*p - mean).transpose())
                .sum();
            let axes = spread.symmetric_eigen();
            let fitted = axes
                .eigenvectors
                .column(axes.eigenvalues.imin())
                .into_owned();
            normal = if fitted.dot(up) < 0.0 {
                -fitted
            } else {
                fitted
            };
            height = -normal.dot(&mean);
        }
        (height > 0.0 && normal.dot(up) >= UPRIGHT).then_some(height)
    }
}

#[cfg(test)]
mod tests {
    use image::RgbImage;
    use ndarray::Array2;

    use super::*;
    use crate::geometry::Intrinsics;
    use crate::map::scale::{ScaleKeeper, ScaleSource};
    use crate::map::{FrameView, PointFilter, points_of_frame};
    use crate::world::{Camera, Image, PaintedRoom, Style, Walk, WalkConfig, render};

    #[test]
    fn the_height_above_the_floor_of_the_room_is_found_within_two_percent() {
        let room = PaintedRoom::new();
        let camera = Camera::from_field_of_view(112, 84, 75f64.to_radians());
        let intrinsics = Intrinsics {
            fx: camera.fx,
            fy: camera.fy,
            cx: camera.cx,
            cy: camera.cy,
        };
        let mut random = Pcg32::seed_from_u64(5);
        let mut noise = || f64::from(random.next_u32()) / f64::from(u32::MAX) - 0.5;
        let confidence = Array2::from_elem((84, 112), 2.0);
        let mut image = Image::default();
        let mut points = Vec::new();
        for (seed, metres_per_unit) in [(3, 1.0), (4, 0.3), (5, 0.7), (6, 1.4), (7, 1.9), (8, 2.9)]
        {
            let walk = WalkConfig {
                seed,
                turn: std::f64::consts::PI,
                style: Style::Robot,
            };
            let poses: Vec<_> = Walk::new(room.room(), &walk).take(200).step_by(3).collect();
            let mut keeper = ScaleKeeper::new(ScaleSource::CameraHeight(poses[0].translation.z));
            for room_from_camera in poses {
                render(&room, &camera, &room_from_camera, &mut image);
                let depth = Array2::from_shape_fn((84, 112), |(v, u)| {
                    let metres = f64::from(image.depth[v * 112 + u]) * (1.0 + 0.06 * noise());
                    (metres / metres_per_unit) as f32
                });
                let mut world_from_camera = room_from_camera;
                world_from_camera.translation.vector /= metres_per_unit;
                let view = FrameView {
                    depth: depth.view(),
                    confidence: confidence.view(),
                    image: &RgbImage::new(112, 84),
                    kept: None,
                    world_from_camera: &world_from_camera,
                    intrinsics: &intrinsics,
                };
                points_of_frame(&view, &PointFilter::default(), &mut points);
                let place = Point3::from(world_from_camera.translation.vector);
                if keeper.see_frame(&points, &place, &Vector3::z()) {
                    break;
                }
            }
            let scale = keeper.scale();
            assert!(scale.is_metric, "walk {seed}: {}", keeper.describe());
            let error = scale.metres_per_unit / metres_per_unit - 1.0;
            assert!(error.abs() < 0.02, "walk {seed}: {error}");
        }
    }

    #[test]
    fn a_wall_is_no_floor() {
        let mut keeper = ScaleKeeper::new(ScaleSource::CameraHeight(1.2));
        let wall: Vec<MapPoint> = (0..2000)
            .map(|i| MapPoint {
                position: [
                    2.0,
                    0.1 * (i % 50) as f32 - 2.5,
                    0.05 * (i / 50) as f32 - 1.0,
                ],
                color: [0; 3],
                confidence: 2.0,
            })
            .collect();
        for _ in 0..20 {
            assert!(!keeper.see_frame(&wall, &Point3::origin(), &Vector3::z()));
        }
        assert!(keeper.describe().contains("nothing measured"));
    }
}
