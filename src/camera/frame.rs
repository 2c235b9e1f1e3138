//! A camera's picture and its time.

use image::RgbImage;

const NANOSECONDS: i64 = 1_000_000_000;

/// Nanoseconds since the epoch of the clock that stamped the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp(pub i64);

impl Stamp {
    /// From the two fields of a `builtin_interfaces/Time`.
    pub fn from_ros(sec: i32, nanosec: u32) -> Self {
        Self(i64::from(sec) * NANOSECONDS + i64::from(nanosec))
    }

    /// The two fields of a `builtin_interfaces/Time`: the seconds are rounded down, the nanoseconds lie in
    /// 0..10⁹. A stamp beyond the message's 32-bit seconds becomes the nearest time that it can hold.
    pub fn to_ros(self) -> (i32, u32) {
        let seconds = self.0.div_euclid(NANOSECONDS);
        let nanoseconds = self.0.rem_euclid(NANOSECONDS);
        match i32::try_from(seconds) {
            Ok(seconds) => (seconds, nanoseconds as u32),
            Err(_) if seconds > 0 => (i32::MAX, NANOSECONDS as u32 - 1),
            Err(_) => (i32::MIN, 0),
        }
    }

    /// Seconds, to the precision of a double: about 0.2 µs for times of this century.
    pub fn as_seconds_f64(self) -> f64 {
        let whole = self.0.div_euclid(NANOSECONDS) as f64;
        whole + self.0.rem_euclid(NANOSECONDS) as f64 / NANOSECONDS as f64
    }
}

/// One picture of the camera: 8-bit RGB, upright.
#[derive(Debug, Clone)]
pub struct Frame {
    pub stamp: Stamp,
    pub image: RgbImage,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ros_time_survives_both_ways(sec: i32, nanosec in 0u32..1_000_000_000) {
            prop_assert_eq!(Stamp::from_ros(sec, nanosec).to_ros(), (sec, nanosec));
        }

        #[test]
        fn any_stamp_is_a_legal_ros_time(nanoseconds: i64) {
            prop_assert!(Stamp(nanoseconds).to_ros().1 < 1_000_000_000);
        }
    }

    #[test]
    fn times_before_the_epoch_round_down() {
        assert_eq!(Stamp(-1).to_ros(), (-1, 999_999_999));
        assert_eq!(Stamp(i64::MAX).to_ros(), (i32::MAX, 999_999_999));
        assert_eq!(Stamp(i64::MIN).to_ros(), (i32::MIN, 0));
    }

    #[test]
    fn seconds_keep_the_fraction() {
        assert_eq!(Stamp::from_ros(3, 250_000_000).as_seconds_f64(), 3.25);
        assert_eq!(Stamp::from_ros(-1, 500_000_000).as_seconds_f64(), -0.5);
    }
}
