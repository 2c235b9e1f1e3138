//! One frame's points.

use image::RgbImage;
use nalgebra::Isometry3;
use ndarray::ArrayView2;

use super::filter::{FrameFilter, PointFilter};
use crate::geometry::Intrinsics;

/// A coloured point of the map, in the world's frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MapPoint {
    pub position: [f32; 3],
    /// Red, green, blue.
    pub color: [u8; 3],
    /// The network's confidence, 1 and more: the higher the surer, without a unit.
    pub confidence: f32,
}

/// What is known of one frame: depth along the optical axis and its confidence, the picture that they belong to, all
/// of the same size, and the camera that saw it.
#[derive(Debug, Clone, Copy)]
pub struct FrameView<'a> {
    pub depth: ArrayView2<'a, f32>,
    pub confidence: ArrayView2<'a, f32>,
    pub image: &'a RgbImage,
    /// Pixels that may become points; absent: all.
    pub kept: Option<ArrayView2<'a, bool>>,
    pub world_from_camera: &'a Isometry3<f64>,
    pub intrinsics: &'a Intrinsics,
}

/// Puts the frame's points into `out`, row by row, in place of what it held. Pixels without a finite positive depth,
/// and points that are not finite, are left out; so is what only some of the three pictures cover.
pub fn points_of_frame(view: &FrameView, filter: &PointFilter, out: &mut Vec<MapPoint>) {
    out.clear();
    let rotation = view.world_from_camera.rotation.to_rotation_matrix();
    let rotation = rotation.matrix();
    let origin = view.world_from_camera.translation.vector.cast::<f32>();
    let k = view.intrinsics;
    // A pixel's ray is the sum of a part of its column and one of its row.
    let of_column: Vec<_> = (0..view.depth.ncols())
        .map(|u| (rotation.column(0) * ((u as f64 - k.cx) / k.fx)).cast::<f32>())
        .collect();
    let filter = FrameFilter::new(filter, view.depth, view.confidence);
    let rows = view.image.rows().enumerate().take(view.depth.nrows());
    for (v, pixels) in rows {
        let of_row = rotation.column(1) * ((v as f64 - k.cy) / k.fy) + rotation.column(2);
        let of_row = of_row.cast::<f32>();
        for (u, (pixel, of_column)) in pixels.zip(&of_column).enumerate() {
            let Some((depth, confidence)) = filter.get(v, u) else {
                continue;
            };
            if !is_kept(view.kept, v, u) {
                continue;
            }
            let position = (of_column + of_row) * depth + origin;
            if position.iter().all(|c| c.is_finite()) {
                out.push(MapPoint {
                    position: position.into(),
                    color: pixel.0,
                    confidence,
                });
            }
        }
    }
}

/// What a mask does not cover is left out.
fn is_kept(kept: Option<ArrayView2<bool>>, row: usize, column: usize) -> bool {
    kept.is_none_or(|kept| kept.get([row, column]).is_some_and(|kept| *kept))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::unproject;
    use image::Rgb;
    use nalgebra::Vector3;
    use ndarray::Array2;
    use proptest::prelude::*;

    const K: Intrinsics = Intrinsics {
        fx: 5.0,
        fy: 4.0,
        cx: 3.0,
        cy: 2.0,
    };

    const ALL_BUT_UNSURE: PointFilter = PointFilter {
        conf_threshold: 1.5,
        conf_percentile: 0.0,
        depth_edge: None,
        max_depth: None,
        border: 0,
    };

    fn picture() -> RgbImage {
        RgbImage::from_fn(6, 4, |x, y| Rgb([x as u8, y as u8, 9]))
    }

    fn points(
        depth: &Array2<f32>,
        confidence: &Array2<f32>,
        pose: &Isometry3<f64>,
    ) -> Vec<MapPoint> {
        let mut out = vec![];
        let view = FrameView {
            depth: depth.view(),
            confidence: confidence.view(),
            image: &picture(),
            kept: None,
            world_from_camera: pose,
            intrinsics: &K,
        };
        points_of_frame(&view, &ALL_BUT_UNSURE, &mut out);
        out
    }

    proptest! {
        #[test]
        fn every_pixel_lands_where_the_camera_model_says(
            t in prop::array::uniform3(-5.0..5.0f64), r in prop::array::uniform3(-3.0..3.0f64),
            depth in prop::collection::vec(0.1..20.0f32, 24),
        ) {
            let pose = Isometry3::new(Vector3::from(t), Vector3::from(r));
            let depth = Array2::from_shape_vec((4, 6), depth).unwrap();
            let points = points(&depth, &Array2::from_elem((4, 6), 2.0), &pose);
            prop_assert_eq!(points.len(), 24);
            for point in points {
                let [u, v, _] = point.color;
                let depth = f64::from(depth[[usize::from(v), usize::from(u)]]);
                let expected = pose * unproject(f64::from(u), f64::from(v), depth, &K);
                for (found, expected) in point.position.iter().zip(expected.iter()) {
                    prop_assert!((f64::from(*found) - expected).abs() < 1e-5);
                }
            }
        }

        #[test]
        fn nothing_that_is_no_number_gets_through(
            depth in prop::collection::vec(any::<f32>(), 24), confidence in prop::collection::vec(any::<f32>(), 24),
        ) {
            let depth = Array2::from_shape_vec((4, 6), depth).unwrap();
            let confidence = Array2::from_shape_vec((4, 6), confidence).unwrap();
            for point in points(&depth, &confidence, &Isometry3::identity()) {
                prop_assert!(point.position.iter().all(|c| c.is_finite()));
                prop_assert!(point.confidence >= 1.5 && point.confidence.is_finite());
            }
        }
    }

    #[test]
    fn unsure_and_impossible_pixels_are_left_out() {
        let mut depth = Array2::from_elem((4, 6), 1.0);
        let mut confidence = Array2::from_elem((4, 6), 1.5);
        depth[[0, 0]] = f32::NAN;
        depth[[0, 1]] = f32::INFINITY;
        depth[[0, 2]] = 0.0;
        depth[[0, 3]] = -1.0;
        confidence[[0, 4]] = 1.49;
        confidence[[0, 5]] = f32::NAN;
        let points = points(&depth, &confidence, &Isometry3::identity());
        assert_eq!(points.len(), 18);
        assert!(
            points.iter().all(|p| p.color[1] > 0),
            "all of the first row is out"
        );
    }

    #[test]
    fn masked_pixels_are_left_out_and_so_is_what_the_mask_does_not_cover() {
        let ones = Array2::from_elem((4, 6), 1.0);
        let sure = Array2::from_elem((4, 6), 2.0);
        let kept = Array2::from_shape_fn((3, 6), |(_, column)| column > 1);
        let picture = picture();
        let mut out = vec![];
        let view = FrameView {
            depth: ones.view(),
            confidence: sure.view(),
            image: &picture,
            kept: Some(kept.view()),
            world_from_camera: &Isometry3::identity(),
            intrinsics: &K,
        };
        points_of_frame(&view, &PointFilter::default(), &mut out);
        assert_eq!(out.len(), 12);
        assert!(out.iter().all(|p| p.color[0] > 1 && p.color[1] < 3));
    }

    #[test]
    fn what_was_in_the_buffer_goes() {
        let none = Array2::zeros((0, 0));
        let mut out = vec![MapPoint {
            position: [0.0; 3],
            color: [0; 3],
            confidence: 2.0,
        }];
        let view = FrameView {
            depth: none.view(),
            confidence: none.view(),
            image: &picture(),
            kept: None,
            world_from_camera: &Isometry3::identity(),
            intrinsics: &K,
        };
        points_of_frame(&view, &PointFilter::default(), &mut out);
        assert!(out.is_empty(), "an all-filtered frame is an empty cloud");
    }
}
