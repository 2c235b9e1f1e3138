//! The part of a picture that is used.

use std::borrow::Cow;

use image::{RgbImage, imageops};

use super::ImageError;

/// Pixels that are cut off at the edges of every picture, such as a burned-in border or a part of the robot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Crop {
    pub left: u32,
    pub top: u32,
    pub right: u32,
    pub bottom: u32,
}

/// A part of a picture, not copied. It has pixels and lies inside.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub image: &'a RgbImage,
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

impl Crop {
    /// # Errors
    /// [`ImageError::NothingLeft`] where the crop leaves no pixel.
    pub(super) fn view(self, image: &RgbImage) -> Result<View<'_>, ImageError> {
        let (width, height) = image.dimensions();
        let rest = |side: u32, before: u32, after: u32| {
            let rest = side.checked_sub(before)?.checked_sub(after)?;
            (rest > 0).then_some(rest)
        };
        let nothing = ImageError::NothingLeft { width, height };
        let columns = rest(width, self.left, self.right);
        let rows = rest(height, self.top, self.bottom);
        let (columns, rows) = columns.zip(rows).ok_or(nothing)?;
        Ok(View {
            image,
            left: self.left,
            top: self.top,
            width: columns,
            height: rows,
        })
    }
}

impl<'a> View<'a> {
    pub fn dimensions(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Copied unless it is the whole picture.
    pub fn to_image(self) -> Cow<'a, RgbImage> {
        if self.dimensions() == self.image.dimensions() {
            return Cow::Borrowed(self.image);
        }
        let part = imageops::crop_imm(self.image, self.left, self.top, self.width, self.height);
        Cow::Owned(part.to_image())
    }
}
