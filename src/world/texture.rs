//! Colours of all surfaces, computed once and looked up by place.

use super::Colour;

/// Texels of a metre.
const DENSITY: f32 = 100.0;
/// Steps between two texels that a lookup tells apart, a power of two; its square is what a lookup is scaled by.
const STEPS: u32 = 16;

/// Where the colours of a rectangular surface lie in the atlas.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Texture {
    start: u32,
    columns: u32,
    rows: u32,
}

#[derive(Debug, Default)]
pub(super) struct Atlas {
    /// Red in the lowest byte, then green and blue.
    texels: Vec<u32>,
}

/// Colours that were looked up, summed up.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    channels: [u32; 3],
}

impl Sum {
    /// The mean of the `COUNT` lookups that were added.
    pub fn mean<const COUNT: u32>(self) -> [u8; 3] {
        let scale = STEPS * STEPS * COUNT;
        self.channels.map(|sum| ((sum + scale / 2) / scale) as u8)
    }
}

impl Atlas {
    /// Adds a surface of `width` by `height` metres whose colour at (u, v) metres from its lower corner is `colour`.
    pub fn add(
        &mut self,
        width: f32,
        height: f32,
        mut colour: impl FnMut(f32, f32) -> Colour,
    ) -> Texture {
        let texels = |length: f32| (length * DENSITY).ceil() as u32 + 1;
        let texture = Texture {
            start: self.texels.len() as u32,
            columns: texels(width),
            rows: texels(height),
        };
        for row in 0..texture.rows {
            for column in 0..texture.columns {
                let colour = colour(column as f32 / DENSITY, row as f32 / DENSITY);
                let [r, g, b] = colour.map(|c| (c * 255.0).round().clamp(0.0, 255.0) as u32);
                self.texels.push(r | g << 8 | b << 16);
            }
        }
        texture
    }

    /// Adds the colour at (u, v), interpolated between texels.
    #[inline]
    pub fn look_up(&self, texture: &Texture, u: f32, v: f32, sum: &mut Sum) {
        let steps = |x: f32, texels: u32| {
            let last = (texels - 1) * STEPS - 1;
            ((x * (DENSITY * STEPS as f32)) as u32).min(last)
        };
        let (x, y) = (steps(u, texture.columns), steps(v, texture.rows));
        let lower = texture.start + y / STEPS * texture.columns + x / STEPS;
        let upper = lower + texture.columns;
        let (right, up) = (x % STEPS, y % STEPS);
        let (left, down) = (STEPS - right, STEPS - up);
        let (mut red_and_blue, mut green) = (0, 0);
        for (index, weight) in [
            (lower, left * down),
            (lower + 1, right * down),
            (upper, left * up),
            (upper + 1, right * up),
        ] {
            // Every weight is at most 256 and they add up to it: no channel runs into the next.
            let texel = self.texels[index as usize];
            red_and_blue += (texel & 0xff_00ff) * weight;
            green += (texel >> 8 & 0xff) * weight;
        }
        sum.channels[0] += red_and_blue & 0xffff;
        sum.channels[1] += green;
        sum.channels[2] += red_and_blue >> 16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_interpolates_and_stays_on_its_surface() {
        let mut atlas = Atlas::default();
        atlas.add(0.1, 0.1, |_, _| [1.0; 3]);
        let ramp = atlas.add(0.5, 0.255, |u, v| [u, v, 0.25]);
        atlas.add(0.1, 0.1, |_, _| [1.0; 3]);
        let at = |u, v| {
            let mut sum = Sum::default();
            atlas.look_up(&ramp, u, v, &mut sum);
            sum.mean::<1>()
        };
        for (u, v) in [(0.0, 0.0), (0.5, 0.25), (0.123, 0.2), (0.404, 0.0612)] {
            let expected = [u, v, 0.25].map(|c| c * 255.0);
            for (found, expected) in at(u, v).into_iter().zip(expected) {
                assert!((f32::from(found) - expected).abs() <= 1.0, "at {u}, {v}");
            }
        }
        assert_eq!(at(-1.0, -1.0), at(0.0, 0.0));
        assert_eq!(at(9.0, 9.0), at(0.51, 0.26));
    }
}
