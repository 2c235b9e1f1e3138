//! Why an image was refused.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// An image that cannot be used. [`ImageError::reason`] names the kind for counters.
#[derive(Debug, Error)]
pub enum ImageError {
    #[error("unknown image encoding {0:?}")]
    UnknownEncoding(String),
    #[error("image without pixels: {width}x{height}")]
    Empty { width: u32, height: u32 },
    #[error("image of {width}x{height} is larger than {MAX_PIXELS} pixels")]
    TooLarge { width: u32, height: u32 },
    #[error("{encoding} needs {needed}, not {width}x{height}")]
    UnsupportedSides {
        encoding: String,
        width: u32,
        height: u32,
        needed: &'static str,
    },
    #[error("row step of {step} bytes is less than the {needed} bytes of one row")]
    StepTooSmall { step: u32, needed: u64 },
    #[error("{found} bytes of image data where {needed} are needed")]
    ShortData { found: usize, needed: u64 },
    #[error("neither JPEG nor PNG data")]
    UnknownFormat,
    #[error("image data ends before the image does")]
    Truncated,
    #[error("image data cannot be decoded: {0}")]
    Undecodable(String),
    #[error("the image decoder failed on this data: {0}")]
    DecoderPanic(String),
    #[error(
        "a network input of {width}x{height} pixels: sides must be multiples of 14, 14 to 14336"
    )]
    InvalidNetworkSize { width: u32, height: u32 },
    #[error("nothing is left of an image of {width}x{height} after the crop")]
    NothingLeft { width: u32, height: u32 },
    #[error("cannot resize: {0}")]
    Resize(String),
    #[error("unknown fit {0:?}: crop, pad or reference")]
    UnknownFit(String),
    #[error("no JPEG or PNG files in {}", .0.display())]
    EmptyFolder(PathBuf),
    #[error("no image {index} in a folder of {len}")]
    NoSuchImage { index: usize, len: usize },
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    InFile {
        path: PathBuf,
        source: Box<ImageError>,
    },
}

/// More pixels than any camera sends: what a damaged header asks for is not allocated.
pub const MAX_PIXELS: u64 = 1 << 27;

impl ImageError {
    /// A stable label of the kind of fault, for counting.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::UnknownEncoding(_) => "unknown_encoding",
            Self::Empty { .. } => "empty_image",
            Self::TooLarge { .. } => "too_large",
            Self::UnsupportedSides { .. } => "unsupported_sides",
            Self::StepTooSmall { .. } => "step_too_small",
            Self::ShortData { .. } => "short_data",
            Self::UnknownFormat => "unknown_format",
            Self::Truncated => "truncated",
            Self::Undecodable(_) => "undecodable",
            Self::DecoderPanic(_) => "decoder_panic",
            Self::InvalidNetworkSize { .. } => "invalid_network_size",
            Self::NothingLeft { .. } => "cropped_away",
            Self::Resize(_) => "resize_failed",
            Self::UnknownFit(_) => "unknown_fit",
            Self::EmptyFolder(_) => "empty_folder",
            Self::NoSuchImage { .. } => "no_such_image",
            Self::Unreadable { .. } => "unreadable_file",
            Self::InFile { source, .. } => source.reason(),
        }
    }
}

/// Refuses sizes without pixels and sizes beyond [`MAX_PIXELS`].
pub(super) fn check_size(width: u32, height: u32) -> Result<(), ImageError> {
    if width == 0 || height == 0 {
        return Err(ImageError::Empty { width, height });
    }
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(ImageError::TooLarge { width, height });
    }
    Ok(())
}
