//! What other nodes say on `/tf` and `/tf_static`: where the camera is on the robot, how the odometry moves, and
//! whether they publish a link that this node publishes too.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Condvar, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use nalgebra::{Isometry3, Quaternion, Translation3, UnitQuaternion};
use r2r::geometry_msgs::msg::TransformStamped;
use transforms::{
    Registry, Transform,
    errors::RegistryError,
    geometry::{Quaternion as TreeQuaternion, Vector3},
    time::{Stamp as TreeStamp, Timestamp},
};

use super::frames::frame_name;
use crate::camera::Stamp;

/// How long transforms are kept, as tf2 has it.
const KEPT: Duration = Duration::from_secs(10);
/// Of our own transforms, how many are remembered to be told from those of others.
const REMEMBERED: usize = 256;

#[derive(Default)]
pub struct TransformTree {
    inner: Mutex<Inner>,
    changed: Condvar,
}

struct Inner {
    registry: Registry,
    own: VecDeque<TransformStamped>,
    /// Parents of the frames that others publish, by child.
    parents: BTreeMap<String, String>,
    unusable: u64,
}

impl Default for Inner {
    fn default() -> Self {
        Inner {
            registry: Registry::with_max_age(KEPT),
            own: VecDeque::new(),
            parents: BTreeMap::new(),
            unusable: 0,
        }
    }
}

impl TransformTree {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A transform is in the registry or not: a poisoned lock is still good.
        self.inner
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Remembers what this node is about to publish.
    pub fn note_own(&self, transforms: &[TransformStamped]) {
        let mut inner = self.lock();
        inner.own.extend(transforms.iter().cloned());
        let surplus = inner.own.len().saturating_sub(REMEMBERED);
        inner.own.drain(..surplus);
    }

    /// Takes a message of `/tf` or `/tf_static`. Of the transforms that are no transforms (a quaternion of another length than one, numbers that are
    /// not finite, a second parent) none enters; they are counted.
    pub fn take(&self, transforms: Vec<TransformStamped>, is_static: bool) {
        let mut inner = self.lock();
        for transform in transforms {
            if inner.own.contains(&transform) {
                continue;
            }
            let parent = frame_name(&transform.header.frame_id, "");
            let child = frame_name(&transform.child_frame_id, "");
            if parent.is_empty() || child.is_empty() {
                inner.unusable += 1;
                continue;
            }
            match inner.insert(&parent, &child, &transform, is_static) {
                Ok(()) => {
                    inner.parents.insert(child, parent);
                }
                Err(error) => {
                    inner.unusable += 1;
                    log::debug!("the transform from {parent} to {child} is not used: {error}");
                }
            }
        }
        drop(inner);
        self.changed.notify_all();
    }

    /// Forgets everything that has a time: the clock went back.
    pub fn forget_times(&self) {
        let latest = Timestamp::from_nanos(u64::MAX);
        self.lock().registry.remove_transforms_before(latest);
    }

    /// The parent that others give to a frame.
    pub fn parent_of(&self, child: &str) -> Option<String> {
        self.lock().parents.get(child).cloned()
    }

    /// Transforms of others that could not be used.
    pub fn unusable(&self) -> u64 {
        self.lock().unusable
    }

    /// `target_from_source` at a time, interpolated. Waits up to `timeout` for transforms that are on their way, but not
    /// for frames that nobody has ever connected.
    pub fn lookup(
        &self,
        target: &str,
        source: &str,
        stamp: Stamp,
        timeout: Duration,
    ) -> Option<Isometry3<f64>> {
        let time = Timestamp::from_nanos(u64::try_from(stamp.0).ok()?);
        let end = Instant::now() + timeout;
        let mut inner = self.lock();
        loop {
            match inner.registry.get_transform(target, source, time) {
                Ok(found) => return isometry(&found),
                Err(RegistryError::NotFoundAt { .. }) => {}
                Err(_) => return None,
            }
            let left = end.checked_duration_since(Instant::now())?;
            inner = self
                .changed
                .wait_timeout(inner, left)
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .0;
        }
    }
}

impl Inner {
    fn insert(
        &mut self,
        parent: &str,
        child: &str,
        transform: &TransformStamped,
        is_static: bool,
    ) -> Result<(), RegistryError> {
        let (t, r) = (
            &transform.transform.translation,
            &transform.transform.rotation,
        );
        let time = &transform.header.stamp;
        let stamp = if is_static {
            TreeStamp::Static
        } else {
            let nanoseconds = Stamp::from_ros(time.sec, time.nanosec).0;
            TreeStamp::At(Timestamp::from_nanos(
                u64::try_from(nanoseconds).unwrap_or(0),
            ))
        };
        // As tf2 does: a rotation that is nearly one is made one.
        let rotation = TreeQuaternion::from_wxyz(r.w, r.x, r.y, r.z);
        let rotation = if (rotation.norm() - 1.0).abs() < 0.01 {
            rotation.normalize().unwrap_or(rotation)
        } else {
            rotation
        };
        let translation = Vector3::new(t.x, t.y, t.z);
        let made = Transform::new(parent, child, translation, rotation, stamp)?;
        self.registry.add_transform(made)
    }
}

fn isometry(transform: &Transform) -> Option<Isometry3<f64>> {
    transform.validate().ok()?;
    let (t, r) = (transform.translation(), transform.rotation());
    Some(Isometry3::from_parts(
        Translation3::new(t.x, t.y, t.z),
        UnitQuaternion::new_normalize(Quaternion::new(r.w, r.x, r.y, r.z)),
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::node::messages;

    const SECOND: i64 = 1_000_000_000;

    fn link(seconds: f64, parent: &str, child: &str, x: f64) -> TransformStamped {
        let stamp = Stamp((seconds * SECOND as f64) as i64);
        messages::transform(stamp, parent, child, &Isometry3::translation(x, 0.0, 0.0))
    }

    fn x_of(tree: &TransformTree, target: &str, source: &str, seconds: f64) -> Option<f64> {
        let stamp = Stamp((seconds * SECOND as f64) as i64);
        let found = tree.lookup(target, source, stamp, Duration::ZERO)?;
        Some(found.translation.x)
    }

    #[test]
    fn times_between_transforms_are_interpolated_and_others_refused() {
        let tree = TransformTree::default();
        tree.take(vec![link(0.0, "base", "camera", 0.5)], true);
        tree.take(
            vec![
                link(10.0, "odom", "/base", 1.0),
                link(11.0, "odom", "base", 3.0),
            ],
            false,
        );
        assert_eq!(x_of(&tree, "odom", "camera", 10.25), Some(2.0));
        assert_eq!(x_of(&tree, "camera", "odom", 10.25), Some(-2.0));
        assert_eq!(x_of(&tree, "odom", "camera", 11.01), None);
        assert_eq!(x_of(&tree, "odom", "camera", 9.9), None);
        assert_eq!(x_of(&tree, "odom", "nowhere", 10.25), None);
        assert_eq!(x_of(&tree, "base", "camera", 1e6), Some(0.5));
    }

    #[test]
    fn a_transform_on_its_way_is_waited_for() {
        let tree = Arc::new(TransformTree::default());
        tree.take(vec![link(10.0, "odom", "base", 1.0)], false);
        let late = tree.clone();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            late.take(vec![link(11.0, "odom", "base", 2.0)], false);
        });
        let stamp = Stamp(21 * SECOND / 2);
        let found = tree.lookup("odom", "base", stamp, Duration::from_secs(20));
        assert_eq!(found.map(|pose| pose.translation.x), Some(1.5));
        writer.join().unwrap();
    }

    #[test]
    fn our_own_transforms_are_told_from_those_of_others() {
        let tree = TransformTree::default();
        let own = vec![
            link(1.0, "map", "odom", 0.0),
            link(1.0, "odom", "base", 1.0),
        ];
        tree.note_own(&own);
        tree.take(own, false);
        assert_eq!(tree.parent_of("base"), None);
        tree.take(vec![link(1.0, "odom", "base", 1.5)], false);
        assert_eq!(tree.parent_of("base").as_deref(), Some("odom"));
        assert_eq!(tree.parent_of("odom"), None);
    }

    #[test]
    fn what_is_no_transform_is_counted() {
        let tree = TransformTree::default();
        let mut no_rotation = link(1.0, "odom", "base", 1.0);
        no_rotation.transform.rotation.w = 0.0;
        let mut infinite = link(1.0, "odom", "base", f64::INFINITY);
        infinite.header.stamp.sec = -5;
        let nameless = link(1.0, "/", "base", 1.0);
        let itself = link(1.0, "base", "base", 1.0);
        tree.take(vec![no_rotation, infinite, nameless, itself], false);
        assert_eq!(tree.unusable(), 4);
        assert_eq!(tree.parent_of("base"), None);
    }

    #[test]
    fn a_clock_that_goes_back_is_followed() {
        let tree = TransformTree::default();
        tree.take(vec![link(0.0, "base", "camera", 0.5)], true);
        let moving = |seconds| vec![link(seconds, "odom", "base", 1.0)];
        tree.take(moving(1000.0), false);
        tree.forget_times();
        tree.take(moving(1.0), false);
        tree.take(moving(2.0), false);
        assert_eq!(x_of(&tree, "odom", "camera", 1.5), Some(1.5));
    }
}
