//! Rotary position embeddings: the order in which head rows are exported, and the tables that a call is given.
//!
//! Both embeddings are exported in half-split form, where value j of a head rotates with value j + d/2. The two
//! permutations below bring the checkpoint's rows into that form; the tables list d/2 angles in the permuted order.

use super::config::NetworkConfig;
use super::grid::PatchGrid;

/// Row order for the two-dimensional embedding of frame blocks: the first half of a head turns with the patch row, the
/// second with its column, each half-split in itself.
pub fn frame_order(head_dim: usize) -> Vec<usize> {
    let quarter = head_dim / 4;
    [0, 2, 1, 3]
        .iter()
        .flat_map(|&part| part * quarter..(part + 1) * quarter)
        .collect()
}

/// Row order for the three-dimensional embedding of global blocks, whose pairs are neighbours (2m, 2m + 1).
pub fn global_order(head_dim: usize) -> Vec<usize> {
    (0..head_dim)
        .step_by(2)
        .chain((1..head_dim).step_by(2))
        .collect()
}

/// cos and sin for every token, row-major [tokens, head_dim / 2].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RotaryTable {
    pub cos: Vec<f32>,
    pub sin: Vec<f32>,
}

impl RotaryTable {
    fn push(&mut self, position: usize, frequency: f64) {
        let (sin, cos) = (position as f64 * frequency).sin_cos();
        self.cos.push(cos as f32);
        self.sin.push(sin as f32);
    }
}

/// The angles' speeds: base^(-2j/n) for j in 0..n/2.
fn frequencies(base: f64, n: usize) -> Vec<f64> {
    (0..n / 2)
        .map(|j| base.powf(-2.0 * j as f64 / n as f64))
        .collect()
}

/// The tables of one image size.
pub struct Rope {
    grid: PatchGrid,
    special_tokens: usize,
    frame: RotaryTable,
    time: Vec<f64>,
    /// The height and width angles of a global row; they do not change with the frame.
    space: RotaryTable,
}

impl Rope {
    pub fn new(config: &NetworkConfig, grid: PatchGrid) -> Self {
        let special_tokens = config.num_special_tokens;
        let [t, h, w] = config.fhw;
        let half = frequencies(config.rope2d_base, config.head_dim / 2);
        let (height, width) = (
            frequencies(config.rope3d_theta, h),
            frequencies(config.rope3d_theta, w),
        );
        let mut frame = RotaryTable::default();
        let mut space = RotaryTable::default();
        for token in 0..special_tokens {
            half.iter().chain(&half).for_each(|&f| frame.push(0, f));
            height
                .iter()
                .chain(&width)
                .for_each(|&f| space.push(token, f));
        }
        for (row, column) in grid.patches() {
            half.iter().for_each(|&f| frame.push(row + 1, f));
            half.iter().for_each(|&f| frame.push(column + 1, f));
            height
                .iter()
                .for_each(|&f| space.push(special_tokens + row, f));
            width
                .iter()
                .for_each(|&f| space.push(special_tokens + column, f));
        }
        Self {
            grid,
            special_tokens,
            frame,
            time: frequencies(config.rope3d_theta, t),
            space,
        }
    }

    /// The table of frame blocks for one frame, [tokens, head_dim / 2].
    pub fn frame_table(&self) -> &RotaryTable {
        &self.frame
    }

    /// Writes the table of global blocks for `frames` frames of which the first has index `first`,
    /// [frames · tokens, head_dim / 2]. Any index will do: the table is analytic.
    pub fn fill_global(&self, first: u64, frames: usize, table: &mut RotaryTable) {
        let space_width = self.space.cos.len() / self.tokens();
        table.cos.clear();
        table.sin.clear();
        for frame in 0..frames as u64 {
            let (sin, cos): (Vec<f32>, Vec<f32>) = self
                .time
                .iter()
                .map(|speed| ((first + frame) as f64 * speed).sin_cos())
                .map(|(sin, cos)| (sin as f32, cos as f32))
                .unzip();
            for (space_cos, space_sin) in self
                .space
                .cos
                .chunks_exact(space_width)
                .zip(self.space.sin.chunks_exact(space_width))
            {
                table.cos.extend_from_slice(&cos);
                table.cos.extend_from_slice(space_cos);
                table.sin.extend_from_slice(&sin);
                table.sin.extend_from_slice(space_sin);
            }
        }
    }

    fn tokens(&self) -> usize {
        self.special_tokens + self.grid.patch_count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::NetworkSize;

    #[test]
    fn orders_pair_the_right_rows_for_heads_of_64() {
        let frame = frame_order(64);
        let expected: Vec<usize> = (0..16).chain(32..48).chain(16..32).chain(48..64).collect();
        assert_eq!(frame, expected);
        let global = global_order(64);
        assert_eq!(&global[..3], &[0, 2, 4]);
        assert_eq!(&global[32..35], &[1, 3, 5]);
    }

    #[test]
    fn time_angles_advance_with_the_frame_and_space_angles_do_not() {
        let config = NetworkConfig::official();
        let grid = PatchGrid::from(NetworkSize::new(28, 42).unwrap());
        let rope = Rope::new(&config, grid);
        let mut table = RotaryTable::default();
        rope.fill_global(5, 2, &mut table);
        let (tokens, half) = (6 + 6, 32);
        assert_eq!(table.cos.len(), 2 * tokens * half);
        // The fastest time angle of frame 6 at any token, and the fastest row angle of patch (1, 2): position 6 + 1.
        assert_eq!(table.cos[tokens * half], 6f64.cos() as f32);
        let patch = 6 + 3 + 2;
        assert_eq!(table.sin[patch * half + 10], 7f64.sin() as f32);
        assert_eq!(table.sin[patch * half + 21], 8f64.sin() as f32);
        assert_eq!(table.sin[(tokens + patch) * half + 21], 8f64.sin() as f32);
    }
}
