//! Smooth colour noise in space.

use super::Colour;

/// Wavelength in metres and amplitude of each octave.
const OCTAVES: [(f32, f32); 5] = [
    (1.9, 0.55),
    (0.95, 0.5),
    (0.5, 0.42),
    (0.27, 0.34),
    (0.15, 0.24),
];

/// Noise of three independent channels, each roughly within -1 and 1 around 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColourNoise {
    seed: u64,
}

impl ColourNoise {
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    pub fn at(&self, point: [f32; 3]) -> Colour {
        let mut sum = [0.0; 3];
        for (octave, (wavelength, amplitude)) in OCTAVES.into_iter().enumerate() {
            let seed = self.seed.wrapping_mul(OCTAVES.len() as u64) + octave as u64;
            let value = lattice_noise(seed, point.map(|x| x / wavelength));
            for (sum, value) in sum.iter_mut().zip(value) {
                *sum += amplitude * value;
            }
        }
        sum
    }
}

/// Interpolates random values between -1 and 1 at integer points. The lattice is tilted, so that no surface of the room
/// lies along it.
fn lattice_noise(seed: u64, [x, y, z]: [f32; 3]) -> Colour {
    // A rotation: its rows are orthonormal.
    let point = [
        (2.0 * x - y + 2.0 * z) / 3.0,
        (2.0 * x + 2.0 * y - z) / 3.0,
        (-x + 2.0 * y + 2.0 * z) / 3.0,
    ];
    let cell = point.map(f32::floor);
    let weight: [f32; 3] = std::array::from_fn(|axis| {
        let t = point[axis] - cell[axis];
        t * t * t * (t * (6.0 * t - 15.0) + 10.0)
    });
    let mut sum = [0.0; 3];
    for corner in 0..8usize {
        let bit = |axis: usize| corner >> axis & 1;
        let share = |axis: usize| match bit(axis) {
            0 => 1.0 - weight[axis],
            _ => weight[axis],
        };
        let share = share(0) * share(1) * share(2);
        let place: [i64; 3] = std::array::from_fn(|axis| cell[axis] as i64 + bit(axis) as i64);
        let bits = hash(seed, place);
        for (channel, sum) in sum.iter_mut().enumerate() {
            let value = (bits >> (21 * channel)) & 0x1f_ffff;
            *sum += share * (value as f32 / 0x10_0000 as f32 - 1.0);
        }
    }
    sum
}

/// The finaliser of SplitMix64 over the seed and the coordinates.
fn hash(seed: u64, place: [i64; 3]) -> u64 {
    let mix = |mut bits: u64| {
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    };
    let [x, y, z] = place.map(|c| c as u64 & 0x1f_ffff);
    mix(mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ (x | y << 21 | z << 42))
}
