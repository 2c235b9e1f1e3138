//! Image size and patch grid of an exported model.

use serde::{Deserialize, Serialize};

/// Edge of a patch in pixels; the published networks know no other.
pub const PATCH_SIZE: usize = 14;

/// Special tokens before the patches of a frame: one camera, four register and one scale token.
pub const SPECIAL_TOKENS: usize = 6;

/// An image size in pixels that is a whole number of patches in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(usize, usize)", into = "(usize, usize)")]
pub struct PatchGrid {
    height: usize,
    width: usize,
}

/// A size that is not a positive multiple of the patch size.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "image size {height}x{width} (height x width): both must be multiples of {PATCH_SIZE} between {PATCH_SIZE} and {MAX_EDGE}"
)]
pub struct GridError {
    height: usize,
    width: usize,
}

/// Far above any size the network was trained for; keeps every product of sizes within its integer type.
const MAX_EDGE: usize = 14 * 585;

impl PatchGrid {
    pub fn new(height: usize, width: usize) -> Result<Self, GridError> {
        let fits = |edge: usize| {
            (PATCH_SIZE..=MAX_EDGE).contains(&edge) && edge.is_multiple_of(PATCH_SIZE)
        };
        if fits(height) && fits(width) {
            Ok(Self { height, width })
        } else {
            Err(GridError { height, width })
        }
    }

    pub fn height(self) -> usize {
        self.height
    }

    pub fn width(self) -> usize {
        self.width
    }

    pub fn rows(self) -> usize {
        self.height / PATCH_SIZE
    }

    pub fn columns(self) -> usize {
        self.width / PATCH_SIZE
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

impl TryFrom<(usize, usize)> for PatchGrid {
    type Error = GridError;

    fn try_from((height, width): (usize, usize)) -> Result<Self, GridError> {
        Self::new(height, width)
    }
}

impl From<PatchGrid> for (usize, usize) {
    fn from(grid: PatchGrid) -> Self {
        (grid.height, grid.width)
    }
}
