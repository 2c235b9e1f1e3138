//! What goes wrong with real cameras, done to computed pictures on purpose.

use std::ops::Range;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

use super::walk::uniform;

/// Frames between two changes of the exposure.
const EXPOSURE_FRAMES: u64 = 25;
/// Brightness after a step, as a factor: one stop either way.
const EXPOSURE: [f64; 2] = [0.5, 2.0];

/// Which faults, and how strong. The default has none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FaultConfig {
    /// The same seed gives the same faults.
    pub seed: u64,
    /// Standard deviation of noise on each sample, levels of 255.
    pub noise: f64,
    /// The brightness jumps every 25 frames, by up to a stop to either side of the true one.
    pub exposure_steps: bool,
    /// Frames that are lost on the way, per cent.
    pub drop_percent: f64,
    /// Frames that show one even colour, as a wall up close does.
    pub textureless: Range<u64>,
    /// Rows that are black at the top, and as many at the bottom.
    pub black_bars: u32,
    pub clock_jump: Option<ClockJump>,
}

/// The camera's clock is set anew.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockJump {
    /// The first frame with the new clock.
    pub frame: u64,
    /// Negative: the clock goes back.
    pub seconds: f64,
}

/// Frames with each fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FaultCounts {
    pub noisy: u64,
    /// Steps, not frames.
    pub exposure_steps: u64,
    pub dropped: u64,
    pub textureless: u64,
    pub black_bars: u64,
    /// Jumps, not frames.
    pub clock_jumps: u64,
}

/// Spoils the pictures of a camera. What happens to a frame depends on its number and the seed alone.
#[derive(Debug, Clone)]
pub struct Faults {
    config: FaultConfig,
    counts: FaultCounts,
}

impl Faults {
    pub fn new(config: FaultConfig) -> Self {
        Self {
            config,
            counts: FaultCounts::default(),
        }
    }

    pub fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// Spoils frame number `frame`, rows of `width` pixels of red, green and blue. Returns what its stamp is off by, in
    /// nanoseconds, and `None` for a frame that is lost, whose picture stays as it is. Frames are given in order.
    pub fn spoil(&mut self, frame: u64, width: u32, rgb: &mut [u8]) -> Option<i64> {
        if let Some(jump) = self.config.clock_jump
            && jump.frame == frame
        {
            self.counts.clock_jumps += 1;
        }
        let mut rng = self.random(1, frame);
        if uniform(&mut rng, 0.0, 100.0) < self.config.drop_percent {
            self.counts.dropped += 1;
            return None;
        }
        if self.config.textureless.contains(&frame) {
            flatten(rgb);
            self.counts.textureless += 1;
        }
        if self.config.exposure_steps {
            self.expose(frame, rgb);
        }
        if self.config.noise > 0.0 {
            add_noise(&mut rng, self.config.noise, rgb);
            self.counts.noisy += 1;
        }
        if self.config.black_bars > 0 {
            blacken(self.config.black_bars, width, rgb);
            self.counts.black_bars += 1;
        }
        Some(match self.config.clock_jump {
            Some(jump) if frame >= jump.frame => (jump.seconds * 1e9).round() as i64,
            _ => 0,
        })
    }

    /// Numbers for one purpose and place in the stream.
    fn random(&self, purpose: u64, place: u64) -> Pcg32 {
        let stream = purpose << 48 ^ place;
        Pcg32::seed_from_u64(self.config.seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn expose(&mut self, frame: u64, rgb: &mut [u8]) {
        let step = frame / EXPOSURE_FRAMES;
        if step == 0 {
            return;
        }
        if frame.is_multiple_of(EXPOSURE_FRAMES) {
            self.counts.exposure_steps += 1;
        }
        let stops = EXPOSURE.map(f64::log2);
        let factor = uniform(&mut self.random(2, step), stops[0], stops[1]).exp2();
        let table: [u8; 256] = std::array::from_fn(|level| (level as f64 * factor).round() as u8);
        for sample in rgb {
            *sample = table[usize::from(*sample)];
        }
    }
}

/// Gives every pixel the mean colour.
fn flatten(rgb: &mut [u8]) {
    let (pixels, _) = rgb.as_chunks_mut::<3>();
    let mut sum = [0u64; 3];
    for pixel in pixels.iter() {
        for (sum, &sample) in sum.iter_mut().zip(pixel) {
            *sum += u64::from(sample);
        }
    }
    let count = (pixels.len() as u64).max(1);
    let mean = sum.map(|sum| ((sum + count / 2) / count) as u8);
    pixels.fill(mean);
}

/// The sum of four even distributions is near enough to a normal one.
fn add_noise(rng: &mut Pcg32, sigma: f64, rgb: &mut [u8]) {
    // Each of the four has the variance 65536² / 12.
    let scale = (sigma * 3f64.sqrt() / 65536.0) as f32;
    for sample in rgb {
        let bits = rng.next_u64();
        let sum: u64 = (0..4).map(|part| bits >> (16 * part) & 0xFFFF).sum();
        let noise = (sum as f32 - 131_070.0) * scale;
        *sample = (f32::from(*sample) + noise).round() as u8;
    }
}

fn blacken(rows: u32, width: u32, rgb: &mut [u8]) {
    let bar = (rows as usize)
        .saturating_mul(width as usize * 3)
        .min(rgb.len());
    let last = rgb.len() - bar;
    rgb[..bar].fill(0);
    rgb[last..].fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIDTH: u32 = 40;

    fn picture() -> Vec<u8> {
        (0..WIDTH * 30 * 3).map(|i| (60 + i % 97) as u8).collect()
    }

    fn spoilt(faults: &mut Faults, frame: u64) -> (Vec<u8>, Option<i64>) {
        let mut rgb = picture();
        let offset = faults.spoil(frame, WIDTH, &mut rgb);
        (rgb, offset)
    }

    #[test]
    fn without_faults_frames_stay_as_they_are() {
        let mut faults = Faults::new(FaultConfig::default());
        for frame in 0..100 {
            assert_eq!(spoilt(&mut faults, frame), (picture(), Some(0)));
        }
        assert_eq!(faults.counts(), FaultCounts::default());
    }

    #[test]
    fn noise_has_the_strength_that_is_asked_for_and_no_bias() {
        let mut faults = Faults::new(FaultConfig {
            noise: 6.0,
            ..Default::default()
        });
        let differences: Vec<f64> = (0..20)
            .flat_map(|frame| {
                let (rgb, _) = spoilt(&mut faults, frame);
                let pairs = rgb.into_iter().zip(picture());
                pairs
                    .map(|(a, b)| f64::from(a) - f64::from(b))
                    .collect::<Vec<_>>()
            })
            .collect();
        let count = differences.len() as f64;
        let mean = differences.iter().sum::<f64>() / count;
        let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / count;
        assert!(mean.abs() < 0.1, "{mean}");
        assert!((variance.sqrt() - 6.0).abs() < 0.2, "{}", variance.sqrt());
        assert_eq!(faults.counts().noisy, 20);
    }

    #[test]
    fn the_exposure_jumps_and_then_stays() {
        let mut faults = Faults::new(FaultConfig {
            exposure_steps: true,
            ..Default::default()
        });
        let frames: Vec<_> = (0..100).map(|frame| spoilt(&mut faults, frame).0).collect();
        assert_eq!(frames[0], picture());
        let changes: Vec<usize> = (1..100).filter(|&i| frames[i] != frames[i - 1]).collect();
        assert_eq!(changes, [25, 50, 75]);
        assert_eq!(faults.counts().exposure_steps, 3);
    }

    #[test]
    fn as_many_frames_are_lost_as_asked_for() {
        let mut faults = Faults::new(FaultConfig {
            drop_percent: 20.0,
            seed: 3,
            ..Default::default()
        });
        let lost = (0..2000).filter(|&frame| spoilt(&mut faults, frame).1.is_none());
        let lost = lost.count() as u64;
        assert!((340..460).contains(&lost), "{lost}");
        assert_eq!(faults.counts().dropped, lost);
    }

    #[test]
    fn a_wall_has_one_colour_and_bars_are_black() {
        let mut faults = Faults::new(FaultConfig {
            textureless: 2..4,
            black_bars: 3,
            ..Default::default()
        });
        for frame in 0..6 {
            let (rgb, _) = spoilt(&mut faults, frame);
            let row = WIDTH as usize * 3;
            assert!(
                rgb[..3 * row]
                    .iter()
                    .chain(&rgb[27 * row..])
                    .all(|&s| s == 0)
            );
            let (middle, _) = rgb[3 * row..27 * row].as_chunks::<3>();
            let is_flat = middle.iter().all(|pixel| *pixel == middle[0]);
            assert_eq!(is_flat, (2..4).contains(&frame), "{frame}");
            assert!(middle.iter().all(|pixel| *pixel != [0; 3]));
        }
        assert_eq!(
            (faults.counts().textureless, faults.counts().black_bars),
            (2, 6)
        );
    }

    #[test]
    fn the_clock_jumps_once_and_for_good() {
        let mut faults = Faults::new(FaultConfig {
            clock_jump: Some(ClockJump {
                frame: 2,
                seconds: -5.5,
            }),
            ..Default::default()
        });
        let offsets: Vec<_> = (0..4).map(|frame| spoilt(&mut faults, frame).1).collect();
        let back = Some(-5_500_000_000);
        assert_eq!(offsets, [Some(0), Some(0), back, back]);
        assert_eq!(faults.counts().clock_jumps, 1);
    }

    proptest! {
        #[test]
        fn a_frame_is_spoilt_alike_whatever_came_before(
            seed: u64, frame in 0u64..500, bars in 0u32..50, noise in 0.0..300.0f64,
        ) {
            let config = FaultConfig {
                seed, noise, exposure_steps: true, drop_percent: 30.0, black_bars: bars,
                textureless: 100..200, clock_jump: None,
            };
            let alone = spoilt(&mut Faults::new(config.clone()), frame);
            let mut faults = Faults::new(config);
            for before in frame.saturating_sub(3)..frame {
                spoilt(&mut faults, before);
            }
            prop_assert_eq!(spoilt(&mut faults, frame), alone);
        }
    }
}
