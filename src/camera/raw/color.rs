//! Colour and grey pixels of 8-bit samples.

use image::RgbImage;

use super::Rows;
use crate::camera::encoding::Order;

pub(super) fn from_color(rows: &Rows, order: Order, rgb: &mut RgbImage) {
    match order {
        Order::Rgb => {
            for (out, row) in rgb.chunks_exact_mut(rows.length).zip(rows.iter()) {
                out.copy_from_slice(row);
            }
        }
        Order::Bgr => each_pixel::<3>(rows, rgb, |[b, g, r]| [r, g, b]),
        Order::Rgba => each_pixel::<4>(rows, rgb, |[r, g, b, _]| [r, g, b]),
        Order::Bgra => each_pixel::<4>(rows, rgb, |[b, g, r, _]| [r, g, b]),
    }
}

pub(super) fn from_grey(rows: &Rows, rgb: &mut RgbImage) {
    each_pixel::<1>(rows, rgb, |[grey]| [grey; 3]);
}

fn each_pixel<const N: usize>(
    rows: &Rows,
    rgb: &mut RgbImage,
    convert: impl Fn([u8; N]) -> [u8; 3],
) {
    let out_length = rows.length / N * 3;
    for (out, row) in rgb.chunks_exact_mut(out_length).zip(rows.iter()) {
        let (pixels, _) = row.as_chunks::<N>();
        let (out, _) = out.as_chunks_mut::<3>();
        for (out, pixel) in out.iter_mut().zip(pixels) {
            *out = convert(*pixel);
        }
    }
}
