//! From a camera message to a frame, or to the reason why not.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use image::RgbImage;
use r2r::{
    sensor_msgs::msg::{self, CompressedImage, Image},
    std_msgs::msg::Header,
};

use super::{order::Disorder, parameters::Parameters};
use crate::camera::{
    CameraInfo, Encoding, ImageError, RawDecoder, RawImage, RegionOfInterest, Stamp,
    decode_compressed_message,
};

/// A message as it came, not yet decoded: only the newest is worth the work.
pub enum CameraMessage {
    Raw(Image),
    Compressed(CompressedImage),
}

impl CameraMessage {
    pub fn header(&self) -> &Header {
        match self {
            Self::Raw(image) => &image.header,
            Self::Compressed(image) => &image.header,
        }
    }
}

/// A message whose stamp is in order.
pub struct Arrival {
    pub message: CameraMessage,
    pub stamp: Stamp,
    /// Grows where time jumped: a map holds images of one epoch.
    pub epoch: u64,
    pub received: Instant,
    /// The newest that had come by then.
    pub calibration: Option<Arc<CameraInfo>>,
}

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("the image cannot be read: {0}")]
    Image(#[from] ImageError),
    #[error("the stamp is not set and unset_stamp is \"refuse\"")]
    UnsetStamp,
    #[error("{sec} s and {nanosec} ns are no time")]
    InvalidStamp { sec: i32, nanosec: u32 },
    #[error(transparent)]
    Disorder(#[from] Disorder),
    #[error("the image has another size than those before, and size_change is \"refuse\"")]
    SizeChange,
    #[error("there is no calibration yet and rectify is \"always\"")]
    NoCalibration,
    #[error("it was not mapped: {0}")]
    Mapper(#[from] crate::mapper::MapperError),
}

impl Refusal {
    /// A stable label of the kind of fault, for counting.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Image(error) => error.reason(),
            Self::UnsetStamp => "unset_stamp",
            Self::InvalidStamp { .. } => "invalid_stamp",
            Self::Disorder(disorder) => disorder.reason(),
            Self::SizeChange => "size_change",
            Self::NoCalibration => "no_calibration",
            Self::Mapper(error) => error.reason(),
        }
    }
}

/// Decodes messages. Keeps its buffers, and says once what it has to assume.
#[derive(Default)]
pub struct Decoder {
    raw: RawDecoder,
    assumed: BTreeSet<&'static str>,
}

impl Decoder {
    pub fn decode(&mut self, message: &CameraMessage) -> Result<RgbImage, ImageError> {
        match message {
            CameraMessage::Raw(raw) => self.decode_raw(raw),
            CameraMessage::Compressed(compressed) => {
                decode_compressed_message(&compressed.format, &compressed.data)
            }
        }
    }

    fn decode_raw(&mut self, raw: &Image) -> Result<RgbImage, ImageError> {
        let mut image = RgbImage::default();
        self.raw.decode(&raw_image(raw), &mut image)?;
        let encoding = Encoding::named(&raw.encoding)?;
        if let Some(assumed) = encoding.assumed
            && self.assumed.insert(encoding.name)
        {
            log::warn!(
                "images are encoded as {}, which does not say what their channels mean: read as {assumed}",
                encoding.name
            );
        }
        Ok(image)
    }
}

/// The stamp of a message, or the time of its arrival where it has none.
pub fn stamp_of(
    header: &Header,
    arrived: Stamp,
    parameters: &Parameters,
) -> Result<Stamp, Refusal> {
    let (sec, nanosec) = (header.stamp.sec, header.stamp.nanosec);
    if sec < 0 || nanosec >= 1_000_000_000 {
        return Err(Refusal::InvalidStamp { sec, nanosec });
    }
    match Stamp::from_ros(sec, nanosec) {
        Stamp(0) if parameters.unset_stamp == "refuse" => Err(Refusal::UnsetStamp),
        // The clock itself may stand at zero (simulated time before the first /clock): no frame at time zero.
        Stamp(0) if arrived == Stamp(0) => Err(Refusal::UnsetStamp),
        Stamp(0) => Ok(arrived),
        stamp => Ok(stamp),
    }
}

/// What the camera room reads of an image.
pub fn raw_image(image: &Image) -> RawImage<'_> {
    RawImage {
        encoding: &image.encoding,
        width: image.width,
        height: image.height,
        step: image.step,
        is_bigendian: image.is_bigendian != 0,
        data: &image.data,
    }
}

/// What the camera room reads of a calibration. A matrix of another length than the message's counts as zeros.
pub fn calibration_of(info: msg::CameraInfo) -> CameraInfo {
    fn matrix<const N: usize>(values: &[f64]) -> [f64; N] {
        values.try_into().unwrap_or([0.0; N])
    }
    CameraInfo {
        width: info.width,
        height: info.height,
        distortion_model: info.distortion_model,
        k: matrix(&info.k),
        r: matrix(&info.r),
        p: matrix(&info.p),
        d: info.d,
        binning_x: info.binning_x,
        binning_y: info.binning_y,
        roi: RegionOfInterest {
            x_offset: info.roi.x_offset,
            y_offset: info.roi.y_offset,
            width: info.roi.width,
            height: info.roi.height,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        Image {
            encoding: "rgb8".into(),
            width: 2,
            height: 1,
            step: 6,
            data: vec![1, 2, 3, 4, 5, 6],
            ..Default::default()
        }
    }

    fn header(sec: i32, nanosec: u32) -> Header {
        let mut header = Header::default();
        header.stamp.sec = sec;
        header.stamp.nanosec = nanosec;
        header
    }

    #[test]
    fn an_unset_stamp_takes_the_time_of_arrival_or_is_refused() {
        let parameters = Parameters::default();
        let arrived = Stamp(42);
        let stamp = |sec, nanosec, arrived, parameters: &Parameters| {
            stamp_of(&header(sec, nanosec), arrived, parameters).map_err(|error| error.reason())
        };
        assert_eq!(stamp(3, 7, arrived, &parameters), Ok(Stamp(3_000_000_007)));
        assert_eq!(stamp(0, 0, arrived, &parameters), Ok(arrived));
        assert_eq!(stamp(0, 0, Stamp(0), &parameters), Err("unset_stamp"));
        let strict = Parameters {
            unset_stamp: "refuse".into(),
            ..Default::default()
        };
        assert_eq!(stamp(0, 0, arrived, &strict), Err("unset_stamp"));
        for (sec, nanosec) in [(5, 1_000_000_000), (5, u32::MAX), (-1, 0), (i32::MIN, 0)] {
            assert_eq!(
                stamp(sec, nanosec, arrived, &parameters),
                Err("invalid_stamp")
            );
        }
    }

    #[test]
    fn a_broken_image_is_refused_with_its_reason() {
        let mut decoder = Decoder::default();
        let decoded = decoder.decode(&CameraMessage::Raw(image())).unwrap();
        assert_eq!(decoded.as_raw(), &[1, 2, 3, 4, 5, 6]);
        let mut short = image();
        short.data.truncate(2);
        let error = decoder.decode(&CameraMessage::Raw(short)).unwrap_err();
        assert_eq!(error.reason(), "short_data");
        let text = CompressedImage {
            data: b"not a picture".to_vec(),
            ..Default::default()
        };
        assert!(decoder.decode(&CameraMessage::Compressed(text)).is_err());
    }

    #[test]
    fn a_type_name_is_read_as_documented_and_noted_once() {
        let mut decoder = Decoder::default();
        for _ in 0..2 {
            let mut typed = image();
            typed.encoding = "8UC3".into();
            let decoded = decoder.decode(&CameraMessage::Raw(typed)).unwrap();
            assert_eq!(decoded.as_raw(), &[3, 2, 1, 6, 5, 4]);
        }
        assert_eq!(decoder.assumed.len(), 1);
    }
}
