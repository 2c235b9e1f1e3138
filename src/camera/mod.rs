//! From what a camera sends to what the network reads: decoding, upright RGB, calibration and rectification, the
//! resize to the network's size, and folders of images played as a camera.

mod calibration;
mod compressed;
mod crop;
mod distortion;
mod encoding;
mod error;
mod fit;
mod folder;
mod frame;
mod intrinsics;
mod mask;
mod pillow;
mod prepare;
mod raw;
mod rectifier;
mod rectify;
mod resample;
mod size;
mod static_gate;
mod undistort;

pub use calibration::{CalibrationError, CameraInfo, CameraModel, RegionOfInterest};
pub use compressed::{decode_compressed, decode_compressed_message};
pub use crop::Crop;
pub use encoding::{ENCODINGS, Encoding};
pub use error::{ImageError, MAX_PIXELS};
pub use fit::{Fit, Fitter, ReferenceMode, preprocess_reference};
pub use folder::ImageFolder;
pub use frame::{Frame, Stamp};
pub use intrinsics::{Intrinsics, PixelTransform};
pub use mask::{Mask, Placement};
pub use prepare::{PrepareConfig, PrepareError, PreparedImage, Preparer};
pub use raw::{RawDecoder, RawImage, decode_raw};
pub use rectifier::{CalibratedImage, Rectifier};
pub use rectify::{Rectification, Rectify};
pub use size::{NetworkSize, PATCH, reference_size};
pub use static_gate::StaticGate;
pub use undistort::Undistortion;
