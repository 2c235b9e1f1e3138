//! Lines, marks and text on a picture.

use std::convert::Infallible;

use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::mono_font::ascii::FONT_10X20;
pub(super) use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::{Circle, Line, PrimitiveStyle, StyledDrawable};
use embedded_graphics::text::{Alignment, Baseline, Text, TextStyleBuilder};
use image::{Rgb, RgbImage};

const TEXT: Rgb888 = Rgb888::new(225, 225, 225);
/// Farther outside nothing is drawn, so that drawing a line ends.
const OUTSIDE: i32 = 20_000;

pub(super) struct Canvas(RgbImage);

impl Canvas {
    pub fn new(image: RgbImage) -> Self {
        Self(image)
    }

    pub fn image_mut(&mut self) -> &mut RgbImage {
        &mut self.0
    }

    pub fn into_image(self) -> RgbImage {
        self.0
    }

    pub fn line(&mut self, from: (i32, i32), to: (i32, i32), width: u32, color: Rgb888) {
        let near = |(x, y): (i32, i32)| x.abs() < OUTSIDE && y.abs() < OUTSIDE;
        if near(from) && near(to) {
            let line = Line::new(from.into(), to.into());
            let Ok(()) = line.draw_styled(&PrimitiveStyle::with_stroke(color, width), self);
            // Rounds the corner to the next line.
            self.disc(to, width, color);
        }
    }

    pub fn disc(&mut self, centre: (i32, i32), diameter: u32, color: Rgb888) {
        let circle = Circle::with_center(centre.into(), diameter);
        let Ok(()) = circle.draw_styled(&PrimitiveStyle::with_fill(color), self);
    }

    /// Text whose top left corner is given; returns where it ends.
    pub fn text(&mut self, at: (i32, i32), text: &str) -> i32 {
        self.aligned_text(at, text, Alignment::Left, Baseline::Top)
    }

    fn aligned_text(
        &mut self,
        at: (i32, i32),
        text: &str,
        alignment: Alignment,
        baseline: Baseline,
    ) -> i32 {
        let style = TextStyleBuilder::new()
            .alignment(alignment)
            .baseline(baseline)
            .build();
        let font = MonoTextStyle::new(&FONT_10X20, TEXT);
        let Ok(next) = Text::with_text_style(text, at.into(), font, style).draw(self);
        next.x
    }

    /// A bar of a round length, at most `longest` pixels long and ending at `end`, its length written before it.
    pub fn scale_bar(&mut self, end: (i32, i32), pixels_per_unit: f32, longest: u32) {
        let Some(length) = round_length(longest as f32 / pixels_per_unit) else {
            return;
        };
        let start = (end.0 - (length * pixels_per_unit).round() as i32, end.1);
        self.line(start, end, 2, TEXT);
        for (x, y) in [start, end] {
            self.line((x, y - 6), (x, y + 6), 2, TEXT);
        }
        let label = format!("{length} units");
        let before = (start.0 - 10, end.1);
        self.aligned_text(before, &label, Alignment::Right, Baseline::Middle);
    }
}

/// The largest of 1, 2 and 5 times a power of ten that is not above `limit`.
fn round_length(limit: f32) -> Option<f32> {
    let power = 10f32.powf(limit.log10().floor());
    let lengths = [5.0, 2.0, 1.0].map(|m| m * power);
    let fits = |length: &f32| *length <= limit && length.is_normal();
    lengths.into_iter().find(fits)
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        Size::new(self.0.width(), self.0.height())
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I>(&mut self, pixels: I) -> Result<(), Infallible>
    where
        I: IntoIterator<Item = Pixel<Rgb888>>,
    {
        for Pixel(Point { x, y }, color) in pixels {
            let place = (u32::try_from(x), u32::try_from(y));
            if let (Ok(x), Ok(y)) = place
                && let Some(pixel) = self.0.get_pixel_mut_checked(x, y)
            {
                *pixel = Rgb([color.r(), color.g(), color.b()]);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_round_lengths() {
        let cases = [
            (9.9, Some(5.0)),
            (5.0, Some(5.0)),
            (3.0, Some(2.0)),
            (0.19, Some(0.1)),
            (0.0, None),
        ];
        for (limit, expected) in cases {
            assert_eq!(round_length(limit), expected, "{limit}");
        }
        assert_eq!(round_length(f32::INFINITY), None);
        assert_eq!(round_length(f32::NAN), None);
    }
}
