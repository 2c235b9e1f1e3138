//! Where the camera is on the robot.

use std::time::Duration;

use nalgebra::Isometry3;

use crate::{
    camera::Stamp,
    node::{
        frames::{body_from_optical, camera_in_base, is_optical},
        parameters::Parameters,
        tree::TransformTree,
    },
};

/// Asked once a map, when it begins: the camera's place from `/tf` where somebody publishes it, else the parameter's.
pub struct Mount {
    base_from_body: Isometry3<f64>,
    axes: String,
    timeout: Duration,
    /// Absent until a map begins.
    source: Option<Source>,
    base_from_optical: Isometry3<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Tree,
    Parameter,
}

impl Mount {
    pub fn new(parameters: &Parameters) -> Mount {
        let base_from_body = camera_in_base(parameters.camera_in_base);
        Mount {
            base_from_body,
            axes: parameters.camera_axes.clone(),
            timeout: Duration::from_secs_f64(parameters.transform_timeout),
            source: None,
            base_from_optical: base_from_body * body_from_optical(),
        }
    }

    /// Takes optical axes to those of the camera's frame.
    pub fn camera_from_optical(&self, camera: &str) -> Isometry3<f64> {
        if is_optical(camera, &self.axes) {
            Isometry3::identity()
        } else {
            body_from_optical()
        }
    }

    /// The place that the parameter gives to the camera's frame.
    pub fn base_from_camera(&self, camera: &str) -> Isometry3<f64> {
        self.base_from_body * body_from_optical() * self.camera_from_optical(camera).inverse()
    }

    /// Looks where the camera is at a time. Where the tree once knew it and now does not, it is where it was.
    pub fn look(&mut self, tree: &TransformTree, base: &str, camera: &str, stamp: Stamp) -> Source {
        let source = self.source.unwrap_or(Source::Tree);
        let found = match source {
            Source::Tree => tree.lookup(base, camera, stamp, self.timeout),
            Source::Parameter => None,
        };
        let source = match found {
            Some(base_from_camera) => {
                self.base_from_optical = base_from_camera * self.camera_from_optical(camera);
                Source::Tree
            }
            None if self.source.is_none() => {
                self.base_from_optical = self.base_from_body * body_from_optical();
                Source::Parameter
            }
            None => source,
        };
        if self.source.is_none() {
            log::info!(
                "the place of {camera} on {base} comes from {}",
                match source {
                    Source::Tree => "/tf",
                    Source::Parameter => "camera_in_base, since /tf does not connect them",
                }
            );
        }
        self.source = Some(source);
        source
    }

    pub fn base_from_optical(&self) -> &Isometry3<f64> {
        &self.base_from_optical
    }

    /// A new map begins.
    pub fn reset(&mut self) {
        self.source = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::messages;

    fn place(tree: &TransformTree, camera: &str, pose: &Isometry3<f64>) {
        tree.take(
            vec![messages::transform(Stamp(0), "base", camera, pose)],
            true,
        );
    }

    #[test]
    fn the_tree_comes_first_and_the_choice_holds_for_a_map() {
        let tree = TransformTree::default();
        let mut mount = Mount::new(&Parameters {
            camera_in_base: [0.1, 0.0, 0.0, 0.0, 0.0, 0.0],
            ..Default::default()
        });
        let x = |mount: &Mount| mount.base_from_optical().translation.x;
        assert_eq!(
            mount.look(&tree, "base", "camera", Stamp(5)),
            Source::Parameter
        );
        assert_eq!(x(&mount), 0.1);
        place(&tree, "camera", &Isometry3::translation(0.7, 0.0, 0.0));
        assert_eq!(
            mount.look(&tree, "base", "camera", Stamp(6)),
            Source::Parameter
        );
        mount.reset();
        assert_eq!(mount.look(&tree, "base", "camera", Stamp(7)), Source::Tree);
        assert_eq!(x(&mount), 0.7);
        assert_eq!(mount.look(&tree, "base", "other", Stamp(8)), Source::Tree);
        assert_eq!(x(&mount), 0.7, "where it was");
    }

    #[test]
    fn optical_and_body_frames_at_one_place_are_one_camera() {
        let tree = TransformTree::default();
        let body = camera_in_base([0.1, 0.2, 0.3, 0.0, 0.4, 0.5]);
        place(&tree, "camera_link", &body);
        place(&tree, "camera_optical_frame", &(body * body_from_optical()));
        let looked = |camera| {
            let mut mount = Mount::new(&Parameters::default());
            mount.look(&tree, "base", camera, Stamp(1));
            *mount.base_from_optical()
        };
        let difference = looked("camera_link").inverse() * looked("camera_optical_frame");
        assert!(difference.translation.vector.norm() < 1e-12);
        assert!(difference.rotation.angle() < 1e-7);
    }
}
