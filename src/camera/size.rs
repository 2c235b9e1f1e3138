//! The size of the network's input.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ImageError;

/// Side of a square patch of the network, pixels.
pub const PATCH: u32 = 14;
const MAX_SIDE: u32 = 1024 * PATCH;

/// Size of a network input in pixels. Both sides are multiples of [`PATCH`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct NetworkSize {
    pub height: u32,
    pub width: u32,
}

#[derive(Deserialize)]
struct Unchecked {
    height: u32,
    width: u32,
}

impl TryFrom<Unchecked> for NetworkSize {
    type Error = ImageError;

    fn try_from(size: Unchecked) -> Result<Self, ImageError> {
        Self::new(size.height, size.width)
    }
}

impl NetworkSize {
    /// # Errors
    /// [`ImageError::InvalidNetworkSize`] unless both sides are multiples of 14 from 14 to 14336.
    pub fn new(height: u32, width: u32) -> Result<Self, ImageError> {
        let legal = |side: u32| (PATCH..=MAX_SIDE).contains(&side) && side.is_multiple_of(PATCH);
        if legal(height) && legal(width) {
            Ok(Self { height, width })
        } else {
            Err(ImageError::InvalidNetworkSize { width, height })
        }
    }
}

impl fmt::Display for NetworkSize {
    /// Width first: `518x378`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// The size that the reference implementation gives a picture of `width` x `height` pixels: scaled to `target`
/// pixels of width (518 for the released checkpoints), the height rounded to whole patches and cut at `target`.
/// A `target` that is no multiple of 14 counts as the next smaller one; a picture flatter than half a patch
/// gets one patch of height.
pub fn reference_size(width: u32, height: u32, target: u32) -> NetworkSize {
    let target = whole_patches(target);
    NetworkSize {
        height: scaled_height(width, height, target).min(target),
        width: target,
    }
}

pub(super) fn whole_patches(target: u32) -> u32 {
    (target / PATCH).clamp(1, MAX_SIDE / PATCH) * PATCH
}

/// Height of a picture scaled to `target` pixels of width, in whole patches.
pub(super) fn scaled_height(width: u32, height: u32, target: u32) -> u32 {
    whole_patches_near(f64::from(height) * (f64::from(target) / f64::from(width)))
}

/// The nearest multiple of [`PATCH`], halves to the even one: the reference divides, multiplies and rounds in
/// doubles in just this order. NaN, from a picture without pixels, gives one patch.
pub(super) fn whole_patches_near(length: f64) -> u32 {
    let patches = (length / f64::from(PATCH)).round_ties_even();
    patches.clamp(1.0, f64::from(u32::MAX / PATCH)).max(1.0) as u32 * PATCH
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_of_common_cameras() {
        let size = |w, h| {
            let s = reference_size(w, h, 518);
            (s.width, s.height)
        };
        assert_eq!(size(640, 480), (518, 392));
        assert_eq!(size(1280, 720), (518, 294));
        assert_eq!(size(1920, 1080), (518, 294));
        assert_eq!(size(518, 378), (518, 378));
        assert_eq!(size(480, 640), (518, 518));
        assert_eq!(size(112, 84), (518, 392));
        // 518 * 21/518 = 1.5 patches: to the even 2; 35 = 2.5 patches: to the even 2.
        assert_eq!(size(518, 21), (518, 28));
        assert_eq!(size(518, 35), (518, 28));
    }

    #[test]
    fn only_whole_patches_are_network_sizes() {
        assert_eq!(NetworkSize::new(378, 518).unwrap().to_string(), "518x378");
        for (height, width) in [(0, 518), (378, 0), (377, 518), (378, 519), (14350, 14)] {
            let error = NetworkSize::new(height, width).unwrap_err();
            assert_eq!(error.reason(), "invalid_network_size");
        }
    }

    #[test]
    fn a_written_size_is_checked_when_read() {
        let size = NetworkSize::new(84, 112).unwrap();
        let text = serde_json::to_string(&size).unwrap();
        assert_eq!(serde_json::from_str::<NetworkSize>(&text).unwrap(), size);
        assert!(serde_json::from_str::<NetworkSize>(r#"{"height":85,"width":112}"#).is_err());
    }

    proptest! {
        #[test]
        fn every_picture_has_a_legal_size(width: u32, height: u32, target: u32) {
            let size = reference_size(width, height, target);
            prop_assert!(NetworkSize::new(size.height, size.width).is_ok());
        }
    }
}
