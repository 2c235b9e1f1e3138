//! Pillow's bicubic filter, to the bit.
//!
//! Images whose network input has to be the reference implementation's own go this way: that one resizes with
//! Pillow, whose fixed-point weights no faster resampler shares.

use image::RgbImage;

const WEIGHT_BITS: u32 = 22;
/// Reach of the cubic kernel in samples of the coarser of the two grids.
const SUPPORT: f64 = 2.0;

/// The samples that make one output sample, with their weights times 2²².
struct Taps {
    first: usize,
    weights: Vec<i32>,
}

/// Resamples as Pillow's `BICUBIC` does: one pass after the other, each rounded and clipped to 8 bit. A side that
/// keeps its length is not filtered.
///
/// The picture and the target must not be empty.
pub(super) fn resize(image: &RgbImage, width: u32, height: u32) -> RgbImage {
    let mut bytes = image.as_raw().clone();
    let mut columns = image.width();
    let down = |bytes: &mut Vec<u8>, columns: u32| {
        if height != image.height() {
            *bytes = vertical(bytes, columns as usize * 3, &taps(image.height(), height));
        }
    };
    // The order of the passes since Pillow 13: vertical first where that takes off more than twice as many rows
    // as the horizontal pass takes off columns.
    let fewer_rows = i64::from(image.height()) - i64::from(height);
    let fewer_columns = i64::from(image.width()) - i64::from(width);
    let vertical_first = fewer_rows > 0 && fewer_rows > 2 * fewer_columns;
    if vertical_first {
        down(&mut bytes, columns);
    }
    if width != columns {
        bytes = horizontal(&bytes, columns as usize * 3, &taps(columns, width));
        columns = width;
    }
    if !vertical_first {
        down(&mut bytes, columns);
    }
    let mut resized = RgbImage::new(width, height);
    resized.copy_from_slice(&bytes);
    resized
}

/// The Keys kernel with a = -0.5, widened when scaling down.
fn taps(input: u32, output: u32) -> Vec<Taps> {
    let scale = f64::from(input) / f64::from(output);
    let filter_scale = scale.max(1.0);
    let reach = SUPPORT * filter_scale;
    let taps_of = |index: u32| {
        let centre = (f64::from(index) + 0.5) * scale;
        let first = (centre - reach + 0.5).max(0.0) as u32;
        let end = ((centre + reach + 0.5) as u32).min(input);
        let weight = |sample| keys((f64::from(sample) - centre + 0.5) * (1.0 / filter_scale));
        let sum: f64 = (first..end).map(weight).sum();
        let fixed = |sample| (weight(sample) / sum * f64::from(1 << WEIGHT_BITS)).round() as i32;
        Taps {
            first: first as usize,
            weights: (first..end).map(fixed).collect(),
        }
    };
    (0..output).map(taps_of).collect()
}

fn keys(x: f64) -> f64 {
    const A: f64 = -0.5;
    let x = x.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}

const HALF: i32 = 1 << (WEIGHT_BITS - 1);

fn to_level(sum: i32) -> u8 {
    (sum >> WEIGHT_BITS).clamp(0, 255) as u8
}

fn horizontal(bytes: &[u8], row: usize, taps: &[Taps]) -> Vec<u8> {
    let mut result = Vec::with_capacity(bytes.len() / row * taps.len() * 3);
    for row in bytes.chunks_exact(row) {
        let (pixels, _) = row.as_chunks::<3>();
        for Taps { first, weights } in taps {
            let mut sums = [HALF; 3];
            for (pixel, &weight) in pixels.iter().skip(*first).zip(weights) {
                for (sum, &channel) in sums.iter_mut().zip(pixel) {
                    *sum += i32::from(channel) * weight;
                }
            }
            result.extend(sums.map(to_level));
        }
    }
    result
}

fn vertical(bytes: &[u8], row: usize, taps: &[Taps]) -> Vec<u8> {
    let mut result = Vec::with_capacity(row * taps.len());
    let mut sums = vec![HALF; row];
    for Taps { first, weights } in taps {
        sums.fill(HALF);
        for (samples, &weight) in bytes.chunks_exact(row).skip(*first).zip(weights) {
            for (sum, &sample) in sums.iter_mut().zip(samples) {
                *sum += i32::from(sample) * weight;
            }
        }
        result.extend(sums.iter().map(|&sum| to_level(sum)));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::Rgb;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_even_picture_stays_even(
            (width, height) in (1u32..60, 1u32..60), (w, h) in (1u32..90, 1u32..90), color: [u8; 3],
        ) {
            let resized = resize(&RgbImage::from_pixel(width, height, Rgb(color)), w, h);
            prop_assert_eq!(resized.dimensions(), (w, h));
            prop_assert!(resized.pixels().all(|p| p.0 == color));
        }
    }
}
