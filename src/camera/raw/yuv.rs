//! Luma and chroma to RGB: BT.601 of limited range.

use image::RgbImage;
use yuv::{
    YuvBiPlanarImage, YuvConversionMode, YuvError, YuvPackedImage, YuvRange, YuvStandardMatrix,
    uyvy422_to_rgb, yuv_nv12_to_rgb, yuv_nv21_to_rgb, yuv_nv24_to_rgb, yuv_nv42_to_rgb,
    yuyv422_to_rgb,
};

use super::Rows;
use crate::camera::ImageError;
use crate::camera::encoding::{Packing, Planes};

/// Row by row, since the library passes over a last row that lacks its padding. The width is even.
pub(super) fn from_packed(
    rows: &Rows,
    packing: Packing,
    rgb: &mut RgbImage,
) -> Result<(), ImageError> {
    let width = rgb.width();
    let convert = match packing {
        Packing::Uyvy => uyvy422_to_rgb,
        Packing::Yuyv => yuyv422_to_rgb,
    };
    for (out, yuy) in rgb.chunks_exact_mut(width as usize * 3).zip(rows.iter()) {
        let row = YuvPackedImage {
            yuy,
            yuy_stride: width * 2,
            width,
            height: 1,
        };
        convert(
            &row,
            out,
            width * 3,
            YuvRange::Limited,
            YuvStandardMatrix::Bt601,
        )
        .map_err(refused)?;
    }
    Ok(())
}

/// One row of chroma at a time, for the same reason. Both sides are even where chroma is shared.
pub(super) fn from_planes(
    rows: &Rows,
    planes: Planes,
    rgb: &mut RgbImage,
) -> Result<(), ImageError> {
    let width = rgb.width();
    let (convert, rows_of_luma): (ConvertPlanes, usize) = match planes {
        Planes::Nv12 => (yuv_nv12_to_rgb, 2),
        Planes::Nv21 => (yuv_nv21_to_rgb, 2),
        Planes::Nv24 => (yuv_nv24_to_rgb, 1),
        Planes::Nv42 => (yuv_nv42_to_rgb, 1),
    };
    // Two bytes for each chroma sample of a row; at full width that is twice the luma's row, and so is its step.
    let chroma_widening = 2 / rows_of_luma;
    let uv_length = rows.length * chroma_widening;
    let (luma, chroma) = rows.data.split_at(rows.step * rows.count);
    let chroma = chroma.chunks(rows.step * chroma_widening);
    let luma = luma.chunks_exact(rows.step * rows_of_luma);
    let rgb = rgb.chunks_exact_mut(width as usize * 3 * rows_of_luma);
    for ((out, y_plane), uv) in rgb.zip(luma).zip(chroma) {
        let image = YuvBiPlanarImage {
            y_plane,
            y_stride: rows.step as u32,
            uv_plane: &uv[..uv_length],
            uv_stride: uv_length as u32,
            width,
            height: rows_of_luma as u32,
        };
        convert(
            &image,
            out,
            width * 3,
            YuvRange::Limited,
            YuvStandardMatrix::Bt601,
            YuvConversionMode::Balanced,
        )
        .map_err(refused)?;
    }
    Ok(())
}

type ConvertPlanes = fn(
    &YuvBiPlanarImage<u8>,
    &mut [u8],
    u32,
    YuvRange,
    YuvStandardMatrix,
    YuvConversionMode,
) -> Result<(), YuvError>;

fn refused(error: YuvError) -> ImageError {
    ImageError::Undecodable(error.to_string())
}
