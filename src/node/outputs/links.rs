//! The links map → odom → base, and who publishes them.

use std::time::Duration;

use nalgebra::Isometry3;
use r2r::geometry_msgs::msg::TransformStamped;

use super::Names;
use crate::{
    camera::Stamp,
    node::{health::is_told, messages, parameters::Parameters, tree::TransformTree},
};

/// What is published about one pose.
pub struct Located {
    pub transforms: Vec<TransformStamped>,
    /// Whether somebody else says how odom and base lie.
    pub has_outside_odometry: bool,
}

pub struct Links {
    map_to_odom: bool,
    odom_to_base: bool,
    timeout: Duration,
    tolerance: Duration,
    /// What was said about links of others.
    told: [Option<String>; 2],
    /// Poses for which the outside odometry was not known.
    missing: u64,
}

impl Links {
    pub fn new(parameters: &Parameters) -> Links {
        let mut links = Links {
            map_to_odom: true,
            odom_to_base: true,
            timeout: Duration::ZERO,
            tolerance: Duration::ZERO,
            told: [None, None],
            missing: 0,
        };
        links.set_parameters(parameters);
        links
    }

    pub fn set_parameters(&mut self, parameters: &Parameters) {
        self.map_to_odom = parameters.publish_map_to_odom;
        self.odom_to_base = parameters.publish_odom_to_base;
        self.timeout = Duration::from_secs_f64(parameters.transform_timeout);
        self.tolerance = Duration::from_secs_f64(parameters.transform_tolerance);
    }

    /// The links for a pose. A frame has one parent: a link to a frame that others give a parent is not published.
    pub fn locate(
        &mut self,
        tree: &TransformTree,
        names: &Names,
        stamp: Stamp,
        map_from_base: &Isometry3<f64>,
    ) -> Located {
        let Names { map, odom, base } = names;
        let map_to_odom = self.map_to_odom && !self.is_taken(tree, 0, map, odom);
        let is_base_taken = self.is_taken(tree, 1, odom, base);
        let has_outside_odometry = is_base_taken || !self.odom_to_base;
        let mut transforms = Vec::with_capacity(2);
        if !has_outside_odometry {
            // Without loop closure between them odometry and map coincide.
            if map_to_odom {
                transforms.push(messages::transform(
                    stamp,
                    map,
                    odom,
                    &Isometry3::identity(),
                ));
            }
            transforms.push(messages::transform(stamp, odom, base, map_from_base));
        } else if map_to_odom {
            match self.odometry(tree, names, stamp) {
                Some(odom_from_base) => {
                    let map_from_odom = map_from_base * odom_from_base.inverse();
                    let until = Stamp(stamp.0.saturating_add(self.tolerance.as_nanos() as i64));
                    transforms.push(messages::transform(until, map, odom, &map_from_odom));
                }
                None => self.note_missing(odom, base),
            }
        }
        Located {
            transforms,
            has_outside_odometry,
        }
    }

    /// How odom and base lie, by other nodes.
    pub fn odometry(
        &self,
        tree: &TransformTree,
        names: &Names,
        stamp: Stamp,
    ) -> Option<Isometry3<f64>> {
        tree.lookup(&names.odom, &names.base, stamp, self.timeout)
    }

    /// Poses whose map → odom could not be composed.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    fn note_missing(&mut self, odom: &str, base: &str) {
        self.missing += 1;
        if is_told(self.missing) {
            log::warn!(
                "nobody says where {base} is in {odom} at the image's time, so map to {odom} is not published ({} so far): \
                 is the odometry running, and do its clock and the camera's agree?",
                self.missing
            );
        }
    }

    fn is_taken(&mut self, tree: &TransformTree, which: usize, parent: &str, child: &str) -> bool {
        let found = tree.parent_of(child);
        let told = &mut self.told[which];
        if found.is_some() && *told != found {
            let other = found.as_deref().unwrap_or_default();
            log::warn!(
                "another node publishes {other} to {child}: this one leaves {parent} to {child} to it, since a frame has one parent"
            );
            *told = found.clone();
        }
        found.is_some()
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::Vector3;

    use super::*;

    fn names() -> Names {
        Names {
            map: "map".into(),
            odom: "odom".into(),
            base: "base".into(),
        }
    }

    fn children(located: &Located) -> Vec<&str> {
        let children = located.transforms.iter();
        children.map(|t| t.child_frame_id.as_str()).collect()
    }

    #[test]
    fn alone_both_links_are_ours() {
        let mut links = Links::new(&Parameters::default());
        let pose = Isometry3::translation(1.0, 0.0, 0.0);
        let located = links.locate(&TransformTree::default(), &names(), Stamp(7), &pose);
        assert_eq!(children(&located), ["odom", "base"]);
        assert!(!located.has_outside_odometry);
    }

    #[test]
    fn with_odometry_of_others_the_chain_still_ends_at_the_pose() {
        let tree = TransformTree::default();
        let odom_from_base =
            Isometry3::new(Vector3::new(0.5, -1.0, 0.0), Vector3::new(0.0, 0.0, 0.4));
        for time in [10, 20] {
            let stamp = Stamp(time);
            tree.take(
                vec![messages::transform(stamp, "odom", "base", &odom_from_base)],
                false,
            );
        }
        let mut links = Links::new(&Parameters {
            transform_tolerance: 0.5,
            ..Default::default()
        });
        let map_from_base =
            Isometry3::new(Vector3::new(2.0, 1.0, 0.1), Vector3::new(0.1, 0.0, 0.9));
        let located = links.locate(&tree, &names(), Stamp(15), &map_from_base);
        assert_eq!(children(&located), ["odom"]);
        assert!(located.has_outside_odometry);
        let link = &located.transforms[0];
        assert_eq!(link.header.stamp.nanosec, 500_000_015);
        tree.take(located.transforms.clone(), true);
        let found = tree
            .lookup("map", "base", Stamp(15), Duration::ZERO)
            .unwrap();
        let difference = found.inverse() * map_from_base;
        assert!(difference.translation.vector.norm() < 1e-9 && difference.rotation.angle() < 1e-7);
    }

    #[test]
    fn odometry_that_is_not_there_is_counted() {
        let mut links = Links::new(&Parameters {
            publish_odom_to_base: false,
            transform_timeout: 0.0,
            ..Default::default()
        });
        let tree = TransformTree::default();
        let located = links.locate(&tree, &names(), Stamp(1), &Isometry3::identity());
        assert!(located.transforms.is_empty());
        assert_eq!(links.missing(), 1);
    }

    #[test]
    fn no_frame_gets_a_second_parent() {
        let tree = TransformTree::default();
        let elsewhere = messages::transform(Stamp(1), "world", "odom", &Isometry3::identity());
        tree.take(vec![elsewhere], true);
        let mut links = Links::new(&Parameters::default());
        let located = links.locate(&tree, &names(), Stamp(1), &Isometry3::identity());
        assert_eq!(children(&located), ["base"]);
    }
}
