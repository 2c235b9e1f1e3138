//! The image encodings of `sensor_msgs` that a colour or grey camera sends.

use std::fmt;

use super::ImageError;

/// A name of `sensor_msgs/image_encodings` that can be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    pub name: &'static str,
    /// For a name that does not tell the meaning of its channels: the encoding that it is read as. Whoever receives
    /// such images should say so once.
    pub assumed: Option<&'static str>,
    pub(super) layout: Layout,
}

/// How the bytes of a picture lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Color(Order, Depth),
    Grey(Depth),
    Bayer(Mosaic, Depth),
    Yuv422(Packing),
    SemiPlanar(Planes),
}

/// The channels of a colour pixel, in the order of their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Rgb,
    Bgr,
    Rgba,
    Bgra,
}

/// Bits of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Eight,
    Sixteen,
}

/// Colours of the filters over the top left four pixels, row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mosaic {
    Rggb,
    Bggr,
    Gbrg,
    Grbg,
}

/// Order of the bytes of two neighbouring pixels that share their chroma.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Uyvy,
    Yuyv,
}

/// A plane of luma and after it one of interleaved chroma: of half the size (`Nv12`, `Nv21`) or of the same, U first
/// (`Nv12`, `Nv24`) or V first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Planes {
    Nv12,
    Nv21,
    Nv24,
    Nv42,
}

/// Every encoding that is decoded, as listed in `docs/camera.md`.
pub static ENCODINGS: [Encoding; 32] = {
    use Depth::{Eight, Sixteen};
    use Layout::{Bayer, Color, Grey, SemiPlanar, Yuv422};
    [
        known("rgb8", Color(Order::Rgb, Eight)),
        known("bgr8", Color(Order::Bgr, Eight)),
        known("rgba8", Color(Order::Rgba, Eight)),
        known("bgra8", Color(Order::Bgra, Eight)),
        known("rgb16", Color(Order::Rgb, Sixteen)),
        known("bgr16", Color(Order::Bgr, Sixteen)),
        known("rgba16", Color(Order::Rgba, Sixteen)),
        known("bgra16", Color(Order::Bgra, Sixteen)),
        known("mono8", Grey(Eight)),
        known("mono16", Grey(Sixteen)),
        assumed("8UC1", "mono8", Grey(Eight)),
        assumed("8UC3", "bgr8", Color(Order::Bgr, Eight)),
        assumed("8UC4", "bgra8", Color(Order::Bgra, Eight)),
        assumed("16UC1", "mono16", Grey(Sixteen)),
        assumed("16UC3", "bgr16", Color(Order::Bgr, Sixteen)),
        assumed("16UC4", "bgra16", Color(Order::Bgra, Sixteen)),
        known("bayer_rggb8", Bayer(Mosaic::Rggb, Eight)),
        known("bayer_bggr8", Bayer(Mosaic::Bggr, Eight)),
        known("bayer_gbrg8", Bayer(Mosaic::Gbrg, Eight)),
        known("bayer_grbg8", Bayer(Mosaic::Grbg, Eight)),
        known("bayer_rggb16", Bayer(Mosaic::Rggb, Sixteen)),
        known("bayer_bggr16", Bayer(Mosaic::Bggr, Sixteen)),
        known("bayer_gbrg16", Bayer(Mosaic::Gbrg, Sixteen)),
        known("bayer_grbg16", Bayer(Mosaic::Grbg, Sixteen)),
        known("uyvy", Yuv422(Packing::Uyvy)),
        known("yuv422", Yuv422(Packing::Uyvy)),
        known("yuyv", Yuv422(Packing::Yuyv)),
        known("yuv422_yuy2", Yuv422(Packing::Yuyv)),
        known("nv12", SemiPlanar(Planes::Nv12)),
        known("nv21", SemiPlanar(Planes::Nv21)),
        known("nv24", SemiPlanar(Planes::Nv24)),
        known("nv42", SemiPlanar(Planes::Nv42)),
    ]
};

const fn known(name: &'static str, layout: Layout) -> Encoding {
    Encoding {
        name,
        assumed: None,
        layout,
    }
}

const fn assumed(name: &'static str, read_as: &'static str, layout: Layout) -> Encoding {
    Encoding {
        name,
        assumed: Some(read_as),
        layout,
    }
}

impl Encoding {
    /// # Errors
    /// [`ImageError::UnknownEncoding`] for names that are not in [`ENCODINGS`]; case counts, as it does in ROS.
    pub fn named(name: &str) -> Result<&'static Self, ImageError> {
        ENCODINGS
            .iter()
            .find(|encoding| encoding.name == name)
            .ok_or_else(|| ImageError::UnknownEncoding(name.to_owned()))
    }

    /// For a Bayer mosaic: the name of the same one of 8-bit samples.
    pub(super) fn eight_bit_mosaic(&self) -> Option<&'static str> {
        let Layout::Bayer(mosaic, _) = self.layout else {
            return None;
        };
        Some(match mosaic {
            Mosaic::Rggb => "bayer_rggb8",
            Mosaic::Bggr => "bayer_bggr8",
            Mosaic::Gbrg => "bayer_gbrg8",
            Mosaic::Grbg => "bayer_grbg8",
        })
    }
}

impl fmt::Display for Encoding {
    /// What the bytes mean, in a few words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.layout {
            Layout::Color(order, depth) => {
                let channels = match order {
                    Order::Rgb => "red, green, blue",
                    Order::Bgr => "blue, green, red",
                    Order::Rgba => "red, green, blue, alpha",
                    Order::Bgra => "blue, green, red, alpha",
                };
                write!(f, "{channels}; {depth} each")
            }
            Layout::Grey(depth) => write!(f, "grey; {depth}"),
            Layout::Bayer(mosaic, depth) => {
                let rows = match mosaic {
                    Mosaic::Rggb => "RG over GB",
                    Mosaic::Bggr => "BG over GR",
                    Mosaic::Gbrg => "GB over RG",
                    Mosaic::Grbg => "GR over BG",
                };
                write!(f, "Bayer mosaic {rows}; {depth}")
            }
            Layout::Yuv422(Packing::Uyvy) => f.write_str("U Y V Y for two pixels; even widths"),
            Layout::Yuv422(Packing::Yuyv) => f.write_str("Y U Y V for two pixels; even widths"),
            Layout::SemiPlanar(planes) => f.write_str(match planes {
                Planes::Nv12 => "Y plane, then U V for four pixels; even sides",
                Planes::Nv21 => "Y plane, then V U for four pixels; even sides",
                Planes::Nv24 => "Y plane, then U V for every pixel",
                Planes::Nv42 => "Y plane, then V U for every pixel",
            }),
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eight => "8 bit",
            Self::Sixteen => "16 bit",
        })
    }
}

impl Depth {
    pub fn bytes(self) -> u64 {
        match self {
            Self::Eight => 1,
            Self::Sixteen => 2,
        }
    }
}

impl Order {
    pub fn channels(self) -> u64 {
        match self {
            Self::Rgb | Self::Bgr => 3,
            Self::Rgba | Self::Bgra => 4,
        }
    }
}

impl Layout {
    /// Bytes of a row's pixels; of the luma alone where that has a plane of its own.
    pub fn row_bytes(self, width: u32) -> u64 {
        let bytes_per_pixel = match self {
            Self::Color(order, depth) => order.channels() * depth.bytes(),
            Self::Grey(depth) | Self::Bayer(_, depth) => depth.bytes(),
            Self::Yuv422(_) => 2,
            Self::SemiPlanar(_) => 1,
        };
        u64::from(width) * bytes_per_pixel
    }

    /// What the sides of a picture must be like, if these are not.
    pub fn refuses(self, width: u32, height: u32) -> Option<&'static str> {
        let even = |side: u32| side.is_multiple_of(2);
        let (fits, rule) = match self {
            Self::Color(..) | Self::Grey(_) | Self::SemiPlanar(Planes::Nv24 | Planes::Nv42) => {
                return None;
            }
            Self::Bayer(..) => (width >= 2 && height >= 2, "sides of two pixels or more"),
            Self::Yuv422(_) => (even(width), "an even width"),
            Self::SemiPlanar(Planes::Nv12 | Planes::Nv21) => {
                (even(width) && even(height), "even sides")
            }
        };
        (!fits).then_some(rule)
    }

    pub fn depth(self) -> Depth {
        match self {
            Self::Color(_, depth) | Self::Grey(depth) | Self::Bayer(_, depth) => depth,
            Self::Yuv422(_) | Self::SemiPlanar(_) => Depth::Eight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fmt::Write;
    use std::path::Path;

    /// The table of `docs/camera.md`.
    fn as_markdown() -> String {
        let mut text = String::from("| encoding | bytes | remark |\n|---|---|---|\n");
        for encoding in &ENCODINGS {
            let remark = encoding
                .assumed
                .map(|read_as| format!("read as `{read_as}`, with a warning"));
            writeln!(
                text,
                "| `{}` | {encoding} | {} |",
                encoding.name,
                remark.unwrap_or_default()
            )
            .unwrap();
        }
        text
    }

    #[test]
    fn the_documented_table_is_the_codes() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/camera.md");
        let document = std::fs::read_to_string(path).unwrap();
        let table = as_markdown();
        assert!(
            document.contains(&table),
            "docs/camera.md needs this table:\n{table}"
        );
    }

    #[test]
    fn names_are_unique_and_assumptions_have_the_layout_they_claim() {
        let names: BTreeSet<_> = ENCODINGS.iter().map(|encoding| encoding.name).collect();
        assert_eq!(names.len(), ENCODINGS.len());
        for encoding in &ENCODINGS {
            if let Some(read_as) = encoding.assumed {
                let claimed = Encoding::named(read_as).unwrap();
                assert_eq!(claimed.layout, encoding.layout, "{}", encoding.name);
                assert_eq!(claimed.assumed, None);
            }
        }
    }

    #[test]
    fn unknown_encodings_are_named() {
        for name in ["", "RGB8", "rgb8; jpeg compressed bgr8", "32FC1", "8UC2"] {
            let error = Encoding::named(name).unwrap_err();
            assert_eq!(error.reason(), "unknown_encoding");
            assert!(error.to_string().contains(&format!("{name:?}")));
        }
    }
}
