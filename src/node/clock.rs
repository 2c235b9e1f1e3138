//! ROS time: the system's, or the simulation's with `use_sim_time`.

use std::sync::{Arc, Mutex};

use crate::camera::Stamp;

#[derive(Clone)]
pub struct Clock(Arc<Mutex<r2r::Clock>>);

impl Clock {
    pub fn of(node: &r2r::Node) -> Clock {
        Clock(node.get_ros_clock())
    }

    /// Zero where the clock cannot be read or has not begun.
    pub fn now(&self) -> Stamp {
        let mut clock = self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let now = clock
            .get_now()
            .map_or(0, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
        Stamp(now)
    }
}
