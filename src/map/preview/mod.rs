//! A picture of the map that is worth looking at.

use std::path::Path;

use image::{RgbImage, imageops};

mod canvas;
mod normals;
mod path;
mod raster;
mod scene;
mod view;

use self::canvas::Canvas;
use self::scene::Scene;
use self::view::View;
use super::{MapError, MapPoint, Trajectory, write_png};

/// Size of the picture in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviewSize {
    pub width: u32,
    pub height: u32,
}

impl Default for PreviewSize {
    fn default() -> Self {
        Self {
            width: 1600,
            height: 800,
        }
    }
}

const SMALLEST: u32 = 64;
const LARGEST: u32 = 8192;
const MARGIN: u32 = 12;
/// Height of the line of text below the two views.
const CAPTION: u32 = 28;
/// Views are drawn this many times larger and averaged.
const OVERSAMPLING: u32 = 2;
const BACKGROUND: [u8; 3] = [24, 26, 30];

/// Writes a PNG with two views of the map and the camera's path in both: on the left from above at a slant, where
/// surfaces that show the viewer their back (the near walls, the ceiling) are left open; on the right from straight
/// above, forward of the first camera up, with a scale bar in the map's unit. The path runs from the green mark to
/// the red one. Stray points far outside are not shown. Sides of `size` are taken to lie in 64..=8192 pixels.
///
/// # Errors
/// [`MapError::Write`].
pub fn write_preview(
    path: &Path,
    points: &[MapPoint],
    trajectory: &Trajectory,
    size: PreviewSize,
) -> Result<(), MapError> {
    write_png(path, &render(points, trajectory, size))
}

fn render(points: &[MapPoint], trajectory: &Trajectory, size: PreviewSize) -> RgbImage {
    let width = size.width.clamp(SMALLEST, LARGEST);
    let height = size.height.clamp(SMALLEST, LARGEST);
    let mut canvas = Canvas::new(RgbImage::from_pixel(width, height, BACKGROUND.into()));
    let text_line = (height - CAPTION + 4) as i32;
    let Some(scene) = Scene::new(points, trajectory) else {
        canvas.text((MARGIN as i32, text_line), "empty map");
        return canvas.into_image();
    };
    let panel_width = (width - 3 * MARGIN) / 2;
    let panel_height = height - MARGIN - CAPTION;
    let fine = (panel_width * OVERSAMPLING, panel_height * OVERSAMPLING);
    let left = View::slanted(&scene, fine);
    let right = View::from_above(&scene, fine);
    for (view, x) in [(&left, MARGIN), (&right, 2 * MARGIN + panel_width)] {
        let mut panel = Canvas::new(raster::points(&scene, view, fine));
        path::draw(&mut panel, &scene, view);
        let panel = imageops::thumbnail(&panel.into_image(), panel_width, panel_height);
        imageops::replace(canvas.image_mut(), &panel, i64::from(x), i64::from(MARGIN));
    }
    let caption = format!("{} points, {} poses", points.len(), trajectory.len());
    let mut x = canvas.text((MARGIN as i32, text_line), &caption) + 30;
    for (color, name) in [(path::START, "start"), (path::END, "end")] {
        canvas.disc((x, text_line + 10), 12, color);
        x = canvas.text((x + 12, text_line), name) + 30;
    }
    let pixels_per_unit = right.scale / OVERSAMPLING as f32;
    let bar_end = ((width - MARGIN) as i32, text_line + 9);
    canvas.scale_bar(bar_end, pixels_per_unit, panel_width / 4);
    canvas.into_image()
}

#[cfg(test)]
mod tests;
