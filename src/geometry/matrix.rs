//! Rigid motions given as matrices.

use nalgebra::{Isometry3, Matrix3, Translation3};
use thiserror::Error;

use super::align::best_rotation;

/// How far the entries of RᵀR may be from those of the identity: files round.
const TOLERANCE: f64 = 1e-3;

/// A matrix that is no rigid motion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MatrixError {
    #[error("a matrix holds a value that is not finite")]
    NotFinite,
    #[error("the left three columns of a matrix are not a rotation")]
    NotARotation,
}

/// The motion whose homogeneous matrix has these upper three rows, with the rotation nearest to theirs.
///
/// # Errors
/// Values that are not finite; a rotation part that mirrors, or is not orthonormal to 0.001.
pub fn rigid_from_rows(rows: &[[f64; 4]; 3]) -> Result<Isometry3<f64>, MatrixError> {
    if rows.iter().flatten().any(|value| !value.is_finite()) {
        return Err(MatrixError::NotFinite);
    }
    let [[a, b, c, x], [d, e, f, y], [g, h, i, z]] = *rows;
    let matrix = Matrix3::new(a, b, c, d, e, f, g, h, i);
    let off = (matrix.transpose() * matrix - Matrix3::identity()).amax();
    // False for NaN, which large entries make, as well.
    let is_orthonormal = off <= TOLERANCE;
    if !is_orthonormal || matrix.determinant() < 0.0 {
        return Err(MatrixError::NotARotation);
    }
    let (rotation, _) = best_rotation(&matrix);
    Ok(Isometry3::from_parts(Translation3::new(x, y, z), rotation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::Vector3;
    use proptest::prelude::*;

    fn rows(pose: &Isometry3<f64>) -> [[f64; 4]; 3] {
        let matrix = pose.to_homogeneous();
        std::array::from_fn(|row| std::array::from_fn(|column| matrix[(row, column)]))
    }

    proptest! {
        #[test]
        fn a_rounded_matrix_gives_its_motion(
            t in prop::array::uniform3(-50.0..50.0f64), r in prop::array::uniform3(-3.0..3.0f64),
        ) {
            let pose = Isometry3::new(Vector3::from(t), Vector3::from(r));
            let exact = rigid_from_rows(&rows(&pose)).unwrap();
            prop_assert!((exact.to_homogeneous() - pose.to_homogeneous()).amax() < 1e-12);
            let rounded = rows(&pose).map(|row| row.map(|x| (x * 1e6).round() / 1e6));
            let close = rigid_from_rows(&rounded).unwrap();
            prop_assert!((close.to_homogeneous() - pose.to_homogeneous()).amax() < 1e-5);
        }
    }

    #[test]
    fn what_is_no_motion_is_refused() {
        let good = rows(&Isometry3::identity());
        let with = |row: usize, column: usize, value: f64| {
            let mut rows = good;
            rows[row][column] = value;
            rigid_from_rows(&rows)
        };
        assert_eq!(with(1, 3, f64::NAN), Err(MatrixError::NotFinite));
        for value in [-1.0, 0.0, 1.01, 1e300] {
            assert_eq!(with(2, 2, value), Err(MatrixError::NotARotation), "{value}");
        }
        assert!(with(0, 3, 1e6).is_ok());
    }
}
