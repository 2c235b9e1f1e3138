//! Bayer mosaics to RGB.

use image::RgbImage;

use super::Rows;
use crate::camera::encoding::Mosaic;

/// Three neighbouring samples of a row.
type Triple = [u8; 3];

/// Fills the two missing colours of every pixel with the mean of the nearest samples of that colour. At the edges the
/// mosaic is mirrored about its outermost samples, which keeps its pattern. Both sides are two pixels or more.
pub(super) fn demosaic(rows: &Rows, mosaic: Mosaic, rgb: &mut RgbImage) {
    let (red_first, green_first) = match mosaic {
        Mosaic::Rggb => (true, false),
        Mosaic::Bggr => (false, false),
        Mosaic::Gbrg => (false, true),
        Mosaic::Grbg => (true, true),
    };
    let last = rows.count - 1;
    for (y, out) in rgb.chunks_exact_mut(rows.length * 3).enumerate() {
        let odd = y % 2 == 1;
        let above = rows.get(if y == 0 { 1 } else { y - 1 });
        let below = rows.get(if y == last { last - 1 } else { y + 1 });
        let neighbours = [above, rows.get(y), below];
        let (out, _) = out.as_chunks_mut::<3>();
        if red_first != odd {
            demosaic_row(neighbours, green_first != odd, out, |own, green, other| {
                [own, green, other]
            });
        } else {
            demosaic_row(neighbours, green_first != odd, out, |own, green, other| {
                [other, green, own]
            });
        }
    }
}

/// `own` is the colour that shares the row with green, `other` the one of the rows above and below.
fn demosaic_row(
    rows: [&[u8]; 3],
    green_first: bool,
    out: &mut [[u8; 3]],
    rgb: impl Fn(u8, u8, u8) -> [u8; 3],
) {
    let at_color = |[above, here, below]: [Triple; 3]| {
        let green = mean4(above[1], here[0], here[2], below[1]);
        rgb(
            here[1],
            green,
            mean4(above[0], above[2], below[0], below[2]),
        )
    };
    let at_green = |[above, here, below]: [Triple; 3]| {
        rgb(mean2(here[0], here[2]), here[1], mean2(above[1], below[1]))
    };
    let pixel = |triples, x: usize| {
        if green_first == x.is_multiple_of(2) {
            at_green(triples)
        } else {
            at_color(triples)
        }
    };
    let last = out.len() - 1;
    out[0] = pixel(rows.map(|row| [row[1], row[0], row[1]]), 0);
    out[last] = pixel(
        rows.map(|row| [row[last - 1], row[last], row[last - 1]]),
        last,
    );
    let (pairs, rest) = out[1..last].as_chunks_mut::<2>();
    let [above, here, below] = rows.map(windows_of_pairs);
    for (pair, ((a, h), b)) in pairs.iter_mut().zip(above.zip(here).zip(below)) {
        let first = [a, h, b].map(|&[w, x, y, _]| [w, x, y]);
        let second = [a, h, b].map(|&[_, x, y, z]| [x, y, z]);
        // The first pixel of a pair has an odd index.
        *pair = if green_first {
            [at_color(first), at_green(second)]
        } else {
            [at_green(first), at_color(second)]
        };
    }
    if let [single] = rest {
        let x = last - 1;
        *single = pixel(rows.map(|row| [row[x - 1], row[x], row[x + 1]]), x);
    }
}

/// Each pair of samples from the second on, with a neighbour on either side.
fn windows_of_pairs(row: &[u8]) -> impl Iterator<Item = &[u8; 4]> {
    row.windows(4).step_by(2).filter_map(<[u8]>::first_chunk)
}

fn mean2(a: u8, b: u8) -> u8 {
    (u16::from(a) + u16::from(b)).div_ceil(2) as u8
}

fn mean4(a: u8, b: u8, c: u8, d: u8) -> u8 {
    ((u16::from(a) + u16::from(b) + u16::from(c) + u16::from(d) + 2) / 4) as u8
}
