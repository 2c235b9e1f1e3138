//! From what a camera sends to what the network reads: decoding, upright RGB, the resize to the network's
//! size, and folders of images played as a camera.

mod compressed;
mod encoding;
mod error;
mod fit;
mod folder;
mod frame;
mod pillow;
mod raw;
mod resample;
mod size;

pub use compressed::decode_compressed;
pub use encoding::{ENCODINGS, Encoding};
pub use error::{ImageError, MAX_PIXELS};
pub use fit::{Fit, Fitter, PixelTransform, ReferenceMode, preprocess_reference};
pub use folder::ImageFolder;
pub use frame::{Frame, Stamp};
pub use raw::{RawDecoder, RawImage, decode_raw};
pub use size::{NetworkSize, PATCH, reference_size};
