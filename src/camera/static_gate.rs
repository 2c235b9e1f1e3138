//! Notices pictures that show nothing new.

use image::RgbImage;

use super::PATCH;

/// Share of the patches that must look the same: a person who walks through a corner of the picture is no reason to map.
const STILL_SHARE: f64 = 0.9;

/// Compares pictures with the last one that was taken, by the mean brightness of their patches: the noise of single
/// pixels averages out, a slow motion adds up until it shows.
#[derive(Clone, Debug)]
pub struct StaticGate {
    threshold: f32,
    /// Mean brightness of each patch of the last picture taken, 0 to 255.
    taken: Option<Vec<f32>>,
}

impl StaticGate {
    /// `threshold` is the change of a patch's mean brightness, 0 to 255, up to which it is the same.
    pub fn new(threshold: f64) -> Self {
        Self {
            threshold: threshold as f32,
            taken: None,
        }
    }

    /// Whether `picture` shows what the last one taken did; if not, it is the one taken from now on.
    pub fn is_still(&mut self, picture: &RgbImage) -> bool {
        let patches = patch_means(picture);
        let is_still = self.taken.as_ref().is_some_and(|taken| {
            let changes = patches
                .iter()
                .zip(taken)
                .map(|(now, then)| (now - then).abs());
            let same = changes.filter(|change| *change <= self.threshold).count();
            taken.len() == patches.len() && same as f64 >= STILL_SHARE * patches.len() as f64
        });
        if !is_still {
            self.taken = Some(patches);
        }
        is_still
    }

    /// The next picture is taken, whatever it shows.
    pub fn reset(&mut self) {
        self.taken = None;
    }
}

/// Mean of the green channel, which carries most of the brightness, over each patch.
fn patch_means(picture: &RgbImage) -> Vec<f32> {
    let columns = picture.width().div_ceil(PATCH) as usize;
    let rows = picture.height().div_ceil(PATCH) as usize;
    let mut sums = vec![(0u32, 0u32); columns * rows];
    for (x, y, pixel) in picture.enumerate_pixels() {
        let patch = (y / PATCH) as usize * columns + (x / PATCH) as usize;
        if let Some((sum, count)) = sums.get_mut(patch) {
            *sum += u32::from(pixel.0[1]);
            *count += 1;
        }
    }
    sums.iter()
        .map(|(sum, count)| *sum as f32 / (*count).max(1) as f32)
        .collect()
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;

    /// A texture moved to the right by `shift` pixels, with noise of ±4 by `seed`.
    fn picture(shift: u32, seed: u32) -> RgbImage {
        RgbImage::from_fn(112, 84, |x, y| {
            let wave = (f64::from(x + 200 - shift) * 0.15).sin() + (f64::from(y) * 0.2).cos();
            let hash = (x * 73 + y * 151 + seed * 911).wrapping_mul(2_654_435_761) >> 24;
            Rgb([(120.0 + 50.0 * wave) as u8 + (hash % 9) as u8; 3])
        })
    }

    #[test]
    fn noise_is_still_and_motion_is_not() {
        let mut gate = StaticGate::new(1.5);
        assert!(!gate.is_still(&picture(0, 0)), "the first is taken");
        assert!((1..6).all(|seed| gate.is_still(&picture(0, seed))));
        assert!(!gate.is_still(&picture(2, 7)));
        assert!(gate.is_still(&picture(2, 8)));
        gate.reset();
        assert!(!gate.is_still(&picture(2, 8)));
        assert!(!gate.is_still(&RgbImage::new(56, 42)), "another size");
    }

    #[test]
    fn slow_motion_adds_up() {
        let mut gate = StaticGate::new(8.0);
        let taken = (0..20).filter(|shift| !gate.is_still(&picture(*shift, *shift)));
        let taken: Vec<u32> = taken.collect();
        assert!(taken.len() > 2 && taken.len() < 20, "{taken:?}");
    }

    #[test]
    fn a_walker_in_a_corner_is_no_motion() {
        let mut gate = StaticGate::new(1.5);
        gate.is_still(&picture(0, 0));
        let mut walker = picture(0, 1);
        for (x, y) in (0..14).flat_map(|x| (0..40).map(move |y| (x, y))) {
            walker.put_pixel(x, y, Rgb([0; 3]));
        }
        assert!(gate.is_still(&walker));
    }
}
