//! Bayer mosaics to RGB.

use image::RgbImage;

use super::Rows;
use crate::camera::encoding::Mosaic;

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
    let mut means = Means::new(rows.length);
    for (y, out) in rgb.chunks_exact_mut(rows.length * 3).enumerate() {
        let odd = y % 2 == 1;
        let above = rows.get(if y == 0 { 1 } else { y - 1 });
        let below = rows.get(if y == last { last - 1 } else { y + 1 });
        let here = rows.get(y);
        means.take(above, here, below);
        let (out, _) = out.as_chunks_mut::<3>();
        if red_first != odd {
            means.fill(here, green_first != odd, out, |own, green, other| {
                [own, green, other]
            });
        } else {
            means.fill(here, green_first != odd, out, |own, green, other| {
                [other, green, own]
            });
        }
    }
}

/// Means about every sample of a row: of all, so that the loops are simple enough to be vectorised, though half of each
/// is used.
struct Means {
    left_right: Vec<u8>,
    above_below: Vec<u8>,
    cross: Vec<u8>,
    diagonal: Vec<u8>,
}

impl Means {
    fn new(width: usize) -> Self {
        Self {
            left_right: vec![0; width],
            above_below: vec![0; width],
            cross: vec![0; width],
            diagonal: vec![0; width],
        }
    }

    fn take(&mut self, above: &[u8], here: &[u8], below: &[u8]) {
        for ((out, &a), &b) in self.above_below.iter_mut().zip(above).zip(below) {
            *out = mean2(a, b);
        }
        let last = here.len() - 1;
        let inner = self.left_right[1..last].iter_mut();
        for (out, (&l, &r)) in inner.zip(neighbours(here)) {
            *out = mean2(l, r);
        }
        let inner = self.cross[1..last].iter_mut();
        for (((out, (&l, &r)), &a), &b) in inner
            .zip(neighbours(here))
            .zip(&above[1..])
            .zip(&below[1..])
        {
            *out = mean4(l, r, a, b);
        }
        let inner = self.diagonal[1..last].iter_mut();
        for ((out, (&a, &b)), (&c, &d)) in inner.zip(neighbours(above)).zip(neighbours(below)) {
            *out = mean4(a, b, c, d);
        }
        for (x, mirrored) in [(0, 1), (last, last - 1)] {
            self.left_right[x] = here[mirrored];
            self.cross[x] = mean4(here[mirrored], here[mirrored], above[x], below[x]);
            self.diagonal[x] = mean2(above[mirrored], below[mirrored]);
        }
    }

    /// `own` is the colour that shares the row with green, `other` the one of the rows above and below.
    fn fill<'a>(
        &'a self,
        here: &'a [u8],
        green_first: bool,
        out: &mut [[u8; 3]],
        rgb: impl Fn(u8, u8, u8) -> [u8; 3],
    ) {
        let (pairs, rest) = out.as_chunks_mut::<2>();
        let pairs_of = |row: &'a [u8]| row.as_chunks::<2>().0.iter();
        let samples = pairs_of(here)
            .zip(pairs_of(&self.left_right))
            .zip(pairs_of(&self.above_below))
            .zip(pairs_of(&self.cross))
            .zip(pairs_of(&self.diagonal));
        for (pair, ((((h, lr), ab), c), d)) in pairs.iter_mut().zip(samples) {
            let at_green = |x: usize| rgb(lr[x], h[x], ab[x]);
            let at_color = |x: usize| rgb(h[x], c[x], d[x]);
            *pair = if green_first {
                [at_green(0), at_color(1)]
            } else {
                [at_color(0), at_green(1)]
            };
        }
        if let [single] = rest {
            let x = here.len() - 1;
            *single = if green_first {
                rgb(self.left_right[x], here[x], self.above_below[x])
            } else {
                rgb(here[x], self.cross[x], self.diagonal[x])
            };
        }
    }
}

/// What stands before and after each sample but the first and the last.
fn neighbours(row: &[u8]) -> impl Iterator<Item = (&u8, &u8)> {
    row.iter().zip(&row[2..])
}

fn mean2(a: u8, b: u8) -> u8 {
    (u16::from(a) + u16::from(b)).div_ceil(2) as u8
}

fn mean4(a: u8, b: u8, c: u8, d: u8) -> u8 {
    ((u16::from(a) + u16::from(b) + u16::from(c) + u16::from(d) + 2) / 4) as u8
}
