//! Stored elements and their conversion to 32-bit floats.

use std::io::{self, Read};

use half::{bf16, f16};

/// How the elements of a tensor are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementType {
    F64,
    F32,
    F16,
    Bf16,
    /// Integers and others that no weight of the network has; the name is for messages.
    Other(&'static str),
}

impl ElementType {
    /// The element type of one of PyTorch's storage classes.
    pub fn of_torch_storage(class: &str) -> Option<Self> {
        Some(match class {
            "DoubleStorage" => Self::F64,
            "FloatStorage" => Self::F32,
            "HalfStorage" => Self::F16,
            "BFloat16Storage" => Self::Bf16,
            "LongStorage" => Self::Other("int64"),
            "IntStorage" => Self::Other("int32"),
            "ShortStorage" => Self::Other("int16"),
            "CharStorage" => Self::Other("int8"),
            "ByteStorage" => Self::Other("uint8"),
            "BoolStorage" => Self::Other("bool"),
            "UntypedStorage" => Self::Other("untyped"),
            _ => return None,
        })
    }

    /// Bytes of one element; `None` where the element type cannot be read.
    pub fn size(self) -> Option<usize> {
        match self {
            Self::F64 => Some(8),
            Self::F32 => Some(4),
            Self::F16 | Self::Bf16 => Some(2),
            Self::Other(_) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

/// Elements converted at a time.
const CHUNK: usize = 1 << 16;

/// Reads `count` elements. The caller bounds `count` by the size of the file.
pub(super) fn read_elements(
    reader: &mut dyn Read,
    element: ElementType,
    order: ByteOrder,
    count: usize,
) -> io::Result<Vec<f32>> {
    let mut values = Vec::new();
    values.try_reserve_exact(count)?;
    match element {
        ElementType::F64 => read_wide(reader, count, order, &mut values, |b| {
            f64::from_ne_bytes(b) as f32
        })?,
        ElementType::F32 => read_wide(reader, count, order, &mut values, f32::from_ne_bytes)?,
        ElementType::F16 => read_wide(reader, count, order, &mut values, |b| {
            f16::from_ne_bytes(b).to_f32()
        })?,
        ElementType::Bf16 => read_wide(reader, count, order, &mut values, |b| {
            bf16::from_ne_bytes(b).to_f32()
        })?,
        ElementType::Other(name) => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{name} elements are not weights"),
            ));
        }
    }
    Ok(values)
}

fn read_wide<const N: usize>(
    reader: &mut dyn Read,
    count: usize,
    order: ByteOrder,
    values: &mut Vec<f32>,
    convert: impl Fn([u8; N]) -> f32,
) -> io::Result<()> {
    let native = if cfg!(target_endian = "big") {
        ByteOrder::Big
    } else {
        ByteOrder::Little
    };
    let mut buffer = vec![[0; N]; CHUNK.min(count)];
    let mut left = count;
    while left > 0 {
        let chunk = &mut buffer[..left.min(CHUNK)];
        reader.read_exact(chunk.as_flattened_mut())?;
        if order != native {
            chunk.iter_mut().for_each(|bytes| bytes.reverse());
        }
        values.extend(chunk.iter().map(|bytes| convert(*bytes)));
        left -= chunk.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], element: ElementType, order: ByteOrder) -> Vec<f32> {
        let count = bytes.len() / element.size().unwrap();
        read_elements(&mut &*bytes, element, order, count).unwrap()
    }

    #[test]
    fn every_element_type_and_byte_order_is_converted() {
        use ByteOrder::{Big, Little};
        use ElementType::{Bf16, F16, F32, F64};
        let expected = [1.5f32, -0.25, 1024.0];
        type ToBytes = fn(f32) -> Vec<u8>;
        let cases: [(ElementType, ToBytes, ToBytes); 4] = [
            (
                F64,
                |v| f64::from(v).to_le_bytes().into(),
                |v| f64::from(v).to_be_bytes().into(),
            ),
            (F32, |v| v.to_le_bytes().into(), |v| v.to_be_bytes().into()),
            (
                F16,
                |v| f16::from_f32(v).to_le_bytes().into(),
                |v| f16::from_f32(v).to_be_bytes().into(),
            ),
            (
                Bf16,
                |v| bf16::from_f32(v).to_le_bytes().into(),
                |v| bf16::from_f32(v).to_be_bytes().into(),
            ),
        ];
        for (element, little, big) in cases {
            let little: Vec<u8> = expected.into_iter().flat_map(little).collect();
            let big: Vec<u8> = expected.into_iter().flat_map(big).collect();
            assert_eq!(read(&little, element, Little), expected, "{element:?}");
            assert_eq!(read(&big, element, Big), expected, "{element:?}");
        }
    }

    #[test]
    fn tensors_longer_than_a_chunk_are_whole() {
        let expected: Vec<f32> = (0..2 * CHUNK + 3).map(|i| i as f32).collect();
        let bytes: Vec<u8> = expected.iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(read(&bytes, ElementType::F32, ByteOrder::Little), expected);
    }

    #[test]
    fn too_few_bytes_and_absurd_counts_are_errors() {
        let bytes = [0u8; 12];
        let read = |count| {
            let order = ByteOrder::Little;
            read_elements(&mut &bytes[..], ElementType::F32, order, count)
        };
        assert_eq!(read(4).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(
            read(usize::MAX).unwrap_err().kind(),
            io::ErrorKind::OutOfMemory
        );
    }
}
