//! From a camera message to a frame, or to the reason why not.

use r2r::{
    sensor_msgs::msg::{self, CompressedImage, Image},
    std_msgs::msg::Header,
};

use super::{frames::frame_name, parameters::Parameters};
use crate::camera::{
    CameraInfo, Frame, ImageError, RawImage, RegionOfInterest, Stamp, decode_compressed_message,
    decode_raw,
};

/// A message as it came, not yet decoded: only the newest is worth the work.
pub enum CameraMessage {
    Raw(Image),
    Compressed(CompressedImage),
}

/// A message with the time of its arrival by the node's clock.
pub struct Arrival {
    pub message: CameraMessage,
    pub arrived: Stamp,
}

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("the image cannot be read: {0}")]
    Image(#[from] ImageError),
    #[error("the stamp is not set and unset_stamp is \"refuse\"")]
    UnsetStamp,
    #[error("the stamp is not later than that of the frame before")]
    NotLater,
    #[error("it was not mapped: {0}")]
    Mapper(#[from] crate::mapper::MapperError),
}

impl Refusal {
    /// A stable label of the kind of fault, for counting.
    pub fn reason(&self) -> &'static str {
        match self {
            Refusal::Image(error) => error.reason(),
            Refusal::UnsetStamp => "unset_stamp",
            Refusal::NotLater => "stamp_not_later",
            Refusal::Mapper(error) => error.reason(),
        }
    }
}

/// The frame of a message and the name of the frame that the camera gives itself.
pub fn decode(arrival: Arrival, parameters: &Parameters) -> Result<(Frame, String), Refusal> {
    let (header, image) = match arrival.message {
        CameraMessage::Raw(raw) => {
            let image = decode_raw(&raw_image(&raw))?;
            (raw.header, image)
        }
        CameraMessage::Compressed(compressed) => {
            let image = decode_compressed_message(&compressed.format, &compressed.data)?;
            (compressed.header, image)
        }
    };
    let stamp = stamp_of(&header, arrival.arrived, parameters)?;
    Ok((
        Frame { stamp, image },
        frame_name(&header.frame_id, &parameters.camera_frame),
    ))
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
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the node does not listen to it yet")
)]
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

fn stamp_of(header: &Header, arrived: Stamp, parameters: &Parameters) -> Result<Stamp, Refusal> {
    let stamp = Stamp::from_ros(header.stamp.sec, header.stamp.nanosec);
    match stamp {
        Stamp(0) if parameters.unset_stamp == "refuse" => Err(Refusal::UnsetStamp),
        // The clock itself may stand at zero (simulated time before the first /clock): no frame at time zero.
        Stamp(0) if arrived == Stamp(0) => Err(Refusal::UnsetStamp),
        Stamp(0) => Ok(arrived),
        stamp => Ok(stamp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(stamp_seconds: i32, frame_id: &str) -> Arrival {
        let mut raw = Image {
            encoding: "rgb8".into(),
            width: 2,
            height: 1,
            step: 6,
            data: vec![1, 2, 3, 4, 5, 6],
            ..Default::default()
        };
        raw.header.stamp.sec = stamp_seconds;
        raw.header.frame_id = frame_id.into();
        Arrival {
            message: CameraMessage::Raw(raw),
            arrived: Stamp(42),
        }
    }

    #[test]
    fn stamp_and_frame_are_the_images_own() {
        let (frame, name) = decode(image(3, "/cam"), &Parameters::default()).unwrap();
        assert_eq!(frame.stamp, Stamp(3_000_000_000));
        assert_eq!(name, "cam");
        assert_eq!(frame.image.as_raw(), &[1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn an_unset_header_takes_the_fallbacks() {
        let (frame, name) = decode(image(0, ""), &Parameters::default()).unwrap();
        assert_eq!(frame.stamp, Stamp(42));
        assert_eq!(name, "camera");
        let strict = Parameters {
            unset_stamp: "refuse".into(),
            ..Default::default()
        };
        assert!(matches!(
            decode(image(0, ""), &strict),
            Err(Refusal::UnsetStamp)
        ));
        let before_the_clock = Arrival {
            arrived: Stamp(0),
            ..image(0, "")
        };
        assert!(matches!(
            decode(before_the_clock, &Parameters::default()),
            Err(Refusal::UnsetStamp)
        ));
    }

    #[test]
    fn a_broken_image_is_refused_with_its_reason() {
        let mut arrival = image(1, "cam");
        if let CameraMessage::Raw(raw) = &mut arrival.message {
            raw.data.truncate(2);
        }
        let refusal = decode(arrival, &Parameters::default()).err().unwrap();
        assert_eq!(refusal.reason(), "short_data");
        let text = CompressedImage {
            data: b"not a picture".to_vec(),
            ..Default::default()
        };
        let arrival = Arrival {
            message: CameraMessage::Compressed(text),
            arrived: Stamp(1),
        };
        assert!(decode(arrival, &Parameters::default()).is_err());
    }
}
