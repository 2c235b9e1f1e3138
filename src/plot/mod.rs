//! Charts as pictures: lines and dots over two axes, with labels. Needs no font of the machine.

mod axis;
mod draw;

use image::RgbImage;
use plotters::style::RGBColor;
use thiserror::Error;

/// Colours that also those tell apart who do not see all colours (Okabe and Ito, "Color universal design").
pub const BLUE: Colour = Colour(0, 114, 178);
pub const ORANGE: Colour = Colour(213, 94, 0);

/// Red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl From<Colour> for RGBColor {
    fn from(Colour(red, green, blue): Colour) -> Self {
        Self(red, green, blue)
    }
}

#[derive(Debug, Error)]
pub enum PlotError {
    #[error("a plot of {width} x {height} pixels is too small for its labels, or too large")]
    Size { width: u32, height: u32 },
    #[error("the plot could not be drawn: {0}")]
    Draw(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A line from point to point, of this width in pixels.
    Line(u32),
    /// Each point as a disc of this radius in pixels.
    Dots(u32),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Named in the legend.
    pub label: Option<String>,
    pub colour: Colour,
    pub style: Style,
    /// Points that are not finite, or farther than 1e30 from zero, are left out.
    pub points: Vec<[f64; 2]>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    /// The later are drawn over the earlier.
    pub series: Vec<Series>,
    /// A length is as long along both axes. Without it, values that are all positive are shown from zero up.
    pub equal_axes: bool,
    /// Height with title and labels, pixels.
    pub height: u32,
}

/// Draws charts one below the other.
///
/// # Errors
/// [`PlotError::Size`] where a chart is smaller than 320 x 200 or the picture larger than 8192 x 8192 pixels,
/// [`PlotError::Draw`].
pub fn draw(charts: &[Chart], width: u32) -> Result<RgbImage, PlotError> {
    draw::picture(charts, width)
}

#[cfg(test)]
mod tests;
