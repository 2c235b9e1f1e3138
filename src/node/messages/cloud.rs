use r2r::sensor_msgs::msg::{PointCloud2, PointField};

use crate::map::POINT_BYTES;

/// A cloud without points yet, whose `data` takes points as [`crate::map::write_points`] writes them.
pub fn empty_cloud() -> PointCloud2 {
    let field = |name: &str, offset: u32| PointField {
        name: name.to_string(),
        offset,
        datatype: PointField::FLOAT32 as u8,
        count: 1,
    };
    PointCloud2 {
        height: 1,
        fields: vec![
            field("x", 0),
            field("y", 4),
            field("z", 8),
            field("rgb", 12),
            field("confidence", 16),
        ],
        is_bigendian: false,
        point_step: POINT_BYTES as u32,
        is_dense: true,
        ..Default::default()
    }
}

/// Sets what depends on the size of `data`: one row of all points, or a grid of `rows` rows. A cloud is dense where no
/// coordinate in it is NaN.
pub fn set_size(cloud: &mut PointCloud2, rows: usize, is_dense: bool) {
    let points = cloud.data.len() / POINT_BYTES;
    let width = points.checked_div(rows).unwrap_or(0);
    cloud.height = rows as u32;
    cloud.width = width as u32;
    cloud.row_step = (width * POINT_BYTES) as u32;
    cloud.is_dense = is_dense;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_data() {
        let mut cloud = empty_cloud();
        let names: Vec<&str> = cloud.fields.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["x", "y", "z", "rgb", "confidence"]);
        set_size(&mut cloud, 1, true);
        assert_eq!((cloud.height, cloud.width, cloud.row_step), (1, 0, 0));
        cloud.data = vec![0; 12 * 20];
        set_size(&mut cloud, 3, false);
        assert_eq!((cloud.height, cloud.width, cloud.row_step), (3, 4, 80));
        assert!(!cloud.is_dense);
    }
}
