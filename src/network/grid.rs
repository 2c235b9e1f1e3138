//! Patch grid of an image size.

use crate::camera::{NetworkSize, PATCH};

/// Edge of a patch in pixels; the published networks know no other.
pub const PATCH_SIZE: usize = PATCH as usize;

/// Special tokens before the patches of a frame: one camera, four register and one scale token.
pub const SPECIAL_TOKENS: usize = 6;

/// An image size as the network counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatchGrid(NetworkSize);

impl From<NetworkSize> for PatchGrid {
    fn from(size: NetworkSize) -> Self {
        Self(size)
    }
}

impl PatchGrid {
    /// Pixels.
    pub fn height(self) -> usize {
        self.0.height as usize
    }

    /// Pixels.
    pub fn width(self) -> usize {
        self.0.width as usize
    }

    pub fn rows(self) -> usize {
        self.height() / PATCH_SIZE
    }

    pub fn columns(self) -> usize {
        self.width() / PATCH_SIZE
    }

    pub fn patch_count(self) -> usize {
        self.rows() * self.columns()
    }

    /// Tokens of one frame: special tokens and patches.
    pub fn tokens(self) -> usize {
        SPECIAL_TOKENS + self.patch_count()
    }

    /// (row, column) of every patch in row-major order.
    pub fn patches(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.rows()).flat_map(move |row| (0..self.columns()).map(move |column| (row, column)))
    }
}
