//! The map: one point for every small cube of space.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::MapPoint;

/// Settings of a [`VoxelMap`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VoxelMapConfig {
    /// Edge of a voxel in the map's unit; 0 takes an eightieth of the first cloud's reach (the median distance of its
    /// points from their middle), some 2 to 3 cm in a room of 5 m.
    pub voxel_size: f32,
    /// Most voxels that are kept, at least one. Beyond it each new voxel takes the place of the oldest.
    pub max_points: usize,
}

impl Default for VoxelMapConfig {
    fn default() -> Self {
        Self {
            voxel_size: 0.0,
            max_points: 2_000_000,
        }
    }
}

/// Fewer points say nothing of a scene's size.
const POINTS_TO_CHOOSE_SIZE: usize = 100;
const VOXELS_PER_REACH: f32 = 80.0;

type Key = [i32; 3];

#[derive(Debug, Clone)]
struct Voxel {
    key: Key,
    /// Means, weighted by confidence.
    position: [f32; 3],
    color: [f32; 3],
    weight: f32,
    count: u32,
}

/// Fuses points into voxels: position and colour of a voxel are the means of its points, weighted by their confidence;
/// its confidence is their mean confidence. Bounded in memory, and the same points in the same order always give the
/// same map.
#[derive(Debug, Clone)]
pub struct VoxelMap {
    config: VoxelMapConfig,
    voxel_size: Option<f32>,
    /// In the order of their creation, but for those that took an older one's place.
    voxels: Vec<Voxel>,
    index: HashMap<Key, u32, FxBuildHasher>,
    /// The oldest voxel, once the map is full.
    oldest: usize,
}

impl VoxelMap {
    pub fn new(config: VoxelMapConfig) -> Self {
        let given = config.voxel_size > 0.0 && config.voxel_size.is_finite();
        Self {
            config,
            voxel_size: given.then_some(config.voxel_size),
            voxels: Vec::new(),
            index: HashMap::default(),
            oldest: 0,
        }
    }

    /// Edge of a voxel; `None` until the first cloud has set it.
    pub fn voxel_size(&self) -> Option<f32> {
        self.voxel_size
    }

    /// Adds points. Those that are not finite are left out. While the voxel size is still to be chosen, clouds of fewer
    /// than a hundred points are left out too.
    pub fn integrate(&mut self, points: &[MapPoint]) {
        let Some(size) = self.voxel_size.or_else(|| size_for(points)) else {
            return;
        };
        self.voxel_size = Some(size);
        // Neighbouring pixels mostly share a voxel.
        let mut last: Option<(Key, usize)> = None;
        for point in points {
            let Some(key) = key_of(point, size) else {
                continue;
            };
            let slot = match last {
                Some((last_key, slot)) if last_key == key => slot,
                _ => self.slot(key),
            };
            last = Some((key, slot));
            if let Some(voxel) = self.voxels.get_mut(slot) {
                voxel.add(point);
            }
        }
    }

    /// The voxel of `key`, a new one where there is none.
    fn slot(&mut self, key: Key) -> usize {
        if let Some(&slot) = self.index.get(&key) {
            return slot as usize;
        }
        let fresh = Voxel::new(key);
        let limit = self.config.max_points.clamp(1, u32::MAX as usize);
        let slot = if self.voxels.len() < limit {
            self.voxels.push(fresh);
            self.voxels.len() - 1
        } else {
            let slot = self.oldest;
            self.oldest = (slot + 1) % limit;
            if let Some(voxel) = self.voxels.get_mut(slot) {
                self.index.remove(&voxel.key);
                *voxel = fresh;
            }
            slot
        };
        self.index.insert(key, slot as u32);
        slot
    }

    /// The map's points in an order that depends only on what was integrated.
    pub fn points(&self) -> impl ExactSizeIterator<Item = MapPoint> + '_ {
        self.voxels.iter().map(Voxel::point)
    }

    pub fn len(&self) -> usize {
        self.voxels.len()
    }

    pub fn is_empty(&self) -> bool {
        self.voxels.is_empty()
    }

    /// Empties the map. A voxel size that was chosen automatically will be chosen anew.
    pub fn clear(&mut self) {
        *self = Self::new(self.config);
    }
}

impl Voxel {
    fn new(key: Key) -> Self {
        Self {
            key,
            position: [0.0; 3],
            color: [0.0; 3],
            weight: 0.0,
            count: 0,
        }
    }

    fn add(&mut self, point: &MapPoint) {
        // Points without confidence count, a little.
        let weight = point.confidence.max(1e-6);
        self.weight += weight;
        self.count = self.count.saturating_add(1);
        let share = weight / self.weight;
        for (mean, value) in self.position.iter_mut().zip(point.position) {
            *mean += (value - *mean) * share;
        }
        for (mean, value) in self.color.iter_mut().zip(point.color) {
            *mean += (f32::from(value) - *mean) * share;
        }
    }

    fn point(&self) -> MapPoint {
        MapPoint {
            position: self.position,
            color: self.color.map(|c| c.round() as u8),
            confidence: self.weight / self.count as f32,
        }
    }
}

/// `None` for what is not finite or lies beyond the grid's two thousand million voxels each way.
fn key_of(point: &MapPoint, size: f32) -> Option<Key> {
    let cell = point.position.map(|c| (c / size).floor());
    let inside = cell.iter().all(|c| c.abs() < i32::MAX as f32);
    (inside && point.confidence.is_finite()).then(|| cell.map(|c| c as i32))
}

fn size_for(points: &[MapPoint]) -> Option<f32> {
    let finite = points
        .iter()
        .filter(|p| p.position.iter().all(|c| c.is_finite()));
    let positions: Vec<[f32; 3]> = finite.map(|p| p.position).collect();
    if positions.len() < POINTS_TO_CHOOSE_SIZE {
        return None;
    }
    let middle = [0, 1, 2].map(|axis| median(positions.iter().map(|p| p[axis]).collect()));
    let distance = |p: &[f32; 3]| {
        let squares = p.iter().zip(middle).map(|(c, m)| (c - m).powi(2));
        squares.sum::<f32>().sqrt()
    };
    let size = median(positions.iter().map(distance).collect()) / VOXELS_PER_REACH;
    (size > 0.0 && size.is_finite()).then_some(size)
}

fn median(mut values: Vec<f32>) -> f32 {
    let middle = values.len() / 2;
    if values.is_empty() {
        return f32::NAN;
    }
    *values.select_nth_unstable_by(middle, f32::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point(position: [f32; 3], grey: u8, confidence: f32) -> MapPoint {
        MapPoint {
            position,
            color: [grey; 3],
            confidence,
        }
    }

    fn map(voxel_size: f32, max_points: usize) -> VoxelMap {
        VoxelMap::new(VoxelMapConfig {
            voxel_size,
            max_points,
        })
    }

    fn cloud(count: usize, scale: f32) -> Vec<MapPoint> {
        let place = |i: usize| {
            let i = i as f32;
            [
                (i * 0.37).sin() * scale,
                (i * 0.73).cos() * scale,
                (i * 0.11).sin() * scale,
            ]
        };
        (0..count)
            .map(|i| point(place(i), (i % 256) as u8, 1.0 + (i % 7) as f32))
            .collect()
    }

    #[test]
    fn a_voxel_is_the_mean_weighted_by_confidence() {
        let mut map = map(1.0, 10);
        map.integrate(&[
            point([0.1, 0.1, 0.1], 0, 1.0),
            point([0.5, 0.9, 0.1], 100, 3.0),
        ]);
        let points: Vec<_> = map.points().collect();
        assert_eq!(points.len(), 1);
        let [x, y, z] = points[0].position;
        assert!((x - 0.4).abs() < 1e-6 && (y - 0.7).abs() < 1e-6 && (z - 0.1).abs() < 1e-6);
        assert_eq!(points[0].color, [75; 3]);
        assert_eq!(points[0].confidence, 2.0);
    }

    #[test]
    fn cells_do_not_mirror_at_zero() {
        let mut map = map(1.0, 10);
        map.integrate(&[
            point([-0.1, 0.0, 0.0], 0, 1.0),
            point([0.1, 0.0, 0.0], 0, 1.0),
        ]);
        assert_eq!(map.len(), 2);
    }

    #[test]
    fn a_full_map_forgets_its_oldest_voxels() {
        let mut map = map(1.0, 3);
        for i in 0..5 {
            map.integrate(&[point([i as f32 + 0.5, 0.0, 0.0], i, 1.0)]);
        }
        let mut greys: Vec<u8> = map.points().map(|p| p.color[0]).collect();
        greys.sort_unstable();
        assert_eq!(greys, [2, 3, 4]);
        assert_eq!(map.index.len(), 3, "the index forgets them too");
        map.integrate(&[point([2.5, 0.0, 0.0], 2, 1.0)]);
        assert_eq!(map.len(), 3, "one that is there is not new");
    }

    #[test]
    fn the_size_follows_the_scenes_scale() {
        let size = |scale: f32| {
            let mut map = map(0.0, 1000);
            map.integrate(&cloud(500, scale));
            map.voxel_size().unwrap()
        };
        assert!((size(100.0) / size(1.0) / 100.0 - 1.0).abs() < 1e-4);
        assert!((0.009..0.02).contains(&size(1.0)), "{}", size(1.0));
    }

    #[test]
    fn a_cloud_too_small_to_tell_the_scale_waits_for_a_larger_one() {
        let mut map = map(0.0, 1000);
        map.integrate(&cloud(99, 1.0));
        map.integrate(&[point([1.0; 3], 0, 1.0); 200]);
        assert_eq!((map.voxel_size(), map.len()), (None, 0));
        map.integrate(&cloud(100, 1.0));
        assert!(map.voxel_size().is_some() && !map.is_empty());
        map.clear();
        assert_eq!((map.voxel_size(), map.len()), (None, 0));
    }

    #[test]
    fn impossible_points_are_left_out() {
        let mut map = map(0.1, 10);
        for bad in [f32::NAN, f32::INFINITY, f32::MAX, -1e30] {
            map.integrate(&[point([0.0, bad, 0.0], 0, 1.0)]);
        }
        map.integrate(&[point([0.0; 3], 0, f32::NAN)]);
        assert!(map.is_empty());
    }

    proptest! {
        /// Against means taken over lists in an ordered map.
        #[test]
        fn it_is_the_mean_of_every_cell(
            points in prop::collection::vec(
                (prop::array::uniform3(-2.0f32..2.0), any::<u8>(), 1.0f32..50.0), 1..200),
            cut in 0usize..200,
        ) {
            let points: Vec<_> = points.into_iter().map(|(p, grey, c)| point(p, grey, c)).collect();
            let mut cells: std::collections::BTreeMap<Key, Vec<MapPoint>> = Default::default();
            for p in &points {
                cells.entry(key_of(p, 0.5).unwrap()).or_default().push(*p);
            }
            let mut map = map(0.5, 10_000);
            let (first, second) = points.split_at(cut.min(points.len()));
            map.integrate(first);
            map.integrate(second);
            prop_assert_eq!(map.len(), cells.len());
            for (voxel, found) in map.voxels.iter().zip(map.points()) {
                let members = &cells[&voxel.key];
                let weight: f64 = members.iter().map(|p| f64::from(p.confidence)).sum();
                for axis in 0..3 {
                    let sum: f64 = members.iter().map(|p| f64::from(p.position[axis] * p.confidence)).sum();
                    prop_assert!((f64::from(found.position[axis]) - sum / weight).abs() < 1e-4);
                }
                let grey: f64 = members.iter().map(|p| f64::from(p.color[0]) * f64::from(p.confidence)).sum();
                prop_assert!((f64::from(found.color[0]) - grey / weight).abs() < 0.51);
                let confidence = weight / members.len() as f64;
                prop_assert!((f64::from(found.confidence) / confidence - 1.0).abs() < 1e-4);
            }
        }

        #[test]
        fn it_never_grows_beyond_its_limit(limit in 1usize..40, count in 0usize..300) {
            let mut map = map(0.05, limit);
            map.integrate(&cloud(count, 1.0));
            prop_assert!(map.len() <= limit && map.index.len() == map.len());
            for (slot, voxel) in map.voxels.iter().enumerate() {
                prop_assert_eq!(map.index.get(&voxel.key), Some(&(slot as u32)));
            }
        }
    }
}
