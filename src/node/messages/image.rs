use r2r::sensor_msgs::msg::Image;

/// An image without pixels yet, one little-endian float each (32FC1).
pub fn empty_image() -> Image {
    Image {
        encoding: "32FC1".into(),
        ..Default::default()
    }
}

/// `pixels`: row by row.
pub fn set_pixels(
    image: &mut Image,
    (rows, columns): (usize, usize),
    pixels: impl IntoIterator<Item = f32>,
) {
    image.height = rows as u32;
    image.width = columns as u32;
    image.step = (columns * size_of::<f32>()) as u32;
    image.data.clear();
    for pixel in pixels {
        image.data.extend_from_slice(&pixel.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_row_by_row() {
        let mut image = empty_image();
        let pixels = [0.0, 1.0, 2.0, 10.0, 11.0, 12.0];
        set_pixels(&mut image, (1, 1), [5.0]);
        set_pixels(&mut image, (2, 3), pixels);
        assert_eq!((image.height, image.width, image.step), (2, 3, 12));
        let values: Vec<f32> = (image.data.chunks_exact(4))
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
            .collect();
        assert_eq!(values, pixels);
    }
}
