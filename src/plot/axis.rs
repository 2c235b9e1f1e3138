//! What an axis shows, and how its numbers are written.

use std::ops::Range;

/// Left free at either end, in parts of what is shown.
const FREE: f64 = 0.05;

/// From the least to the largest value; around zero for no values.
pub fn extent(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if low <= high { low..high } else { 0.0..0.0 }
}

fn length(range: &Range<f64>) -> f64 {
    range.end - range.start
}

/// The middle of `range` with this length around it, which is never so short that its numbers would coincide.
fn around(range: &Range<f64>, wanted: f64) -> Range<f64> {
    let middle = range.start + length(range) / 2.0;
    let half = wanted.max(1e-6 * middle.abs()).max(1e-6) / 2.0;
    middle - half..middle + half
}

/// `range` with something free at both ends.
pub fn padded(range: &Range<f64>) -> Range<f64> {
    around(range, length(range) * (1.0 + 2.0 * FREE))
}

/// From zero for positive values, with something free above.
pub fn from_zero(range: &Range<f64>) -> Range<f64> {
    if range.start < 0.0 {
        return padded(range);
    }
    0.0..(range.end * (1.0 + 2.0 * FREE)).max(1e-6)
}

/// Both ranges made longer until a unit takes as many pixels along both axes, given their lengths in pixels.
pub fn equal(x: &Range<f64>, y: &Range<f64>, pixels: [f64; 2]) -> [Range<f64>; 2] {
    let (x, y) = (padded(x), padded(y));
    let [width, height] = pixels.map(|length| length.max(1.0));
    let unit = (length(&x) / width).max(length(&y) / height);
    [around(&x, unit * width), around(&y, unit * height)]
}

/// Digits after the point that numbers along `range` need, when at most `count` of them stand at multiples of 1, 2 or 5
/// times a power of ten.
pub fn decimals(range: &Range<f64>, count: usize) -> usize {
    let least_step = length(range) / count.max(1) as f64;
    let power = 10f64.powf(least_step.log10().floor());
    // A step above five times the power is ten times the power.
    let power = if least_step > 5.0 * power {
        10.0 * power
    } else {
        power
    };
    (-power.log10()).round().clamp(0.0, 9.0) as usize
}

/// One number of an axis; a zero has no sign.
pub fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|b| matches!(b, b'0' | b'.')) => rest.to_owned(),
        _ => text,
    }
}
