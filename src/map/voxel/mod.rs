//! The map: one point for every small cube of space.

mod size;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::MapPoint;

/// Settings of a [`VoxelMap`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VoxelMapConfig {
    /// Edge of a voxel in the map's unit. 0 follows the scene: an eightieth of the first cloud's reach (the median
    /// distance of its points from their middle), or the distance between neighbouring pixels' points where that is
    /// more, up to three times as much. It then doubles when the map is nearly full, twice at most.
    pub voxel_size: f32,
    /// Most voxels that are kept, at least one. Beyond it each new voxel takes the place of one that few clouds and no
    /// recent ones have seen.
    pub max_points: usize,
    /// A voxel is part of the map once so many clouds have seen it, or all where there were fewer.
    pub min_observations: u32,
}

impl Default for VoxelMapConfig {
    fn default() -> Self {
        Self {
            voxel_size: 0.0,
            max_points: 2_000_000,
            min_observations: 2,
        }
    }
}

/// How often a voxel size that follows the scene may double.
const DOUBLINGS: u32 = 2;
/// Share of `max_points` at which it does: early enough for one more cloud.
const NEARLY_FULL: f64 = 0.875;
/// How many times a voxel can be spared at most when the map is full.
const MAX_SPARED: u8 = 3;

type Key = [i32; 3];

#[derive(Debug, Clone)]
struct Voxel {
    key: Key,
    /// Means, weighted by confidence.
    position: [f32; 3],
    color: [f32; 3],
    weight: f32,
    points: u32,
    /// Clouds that saw it.
    observations: u32,
    /// Number of the last one.
    last_cloud: u32,
    /// How many times it will be spared.
    spared: u8,
}

/// Fuses points into voxels: position and colour of a voxel are the means of its points, weighted by their confidence;
/// its confidence is their mean confidence. Bounded in memory, and the same points in the same order always give the
/// same map.
///
/// A full map makes room as the GCLOCK algorithm does (Smith, "Sequentiality and prefetching in database systems", 1978):
/// a hand goes round over all voxels and takes the first one that is not to be spared; every later observation has a
/// voxel spared once more, up to three times.
#[derive(Debug, Clone)]
pub struct VoxelMap {
    config: VoxelMapConfig,
    voxel_size: Option<f32>,
    voxels: Vec<Voxel>,
    index: HashMap<Key, u32, FxBuildHasher>,
    /// How many voxels have 1, 2, ... observations, below [`VoxelMapConfig::min_observations`].
    seldom_seen: Vec<usize>,
    clouds: u32,
    doublings: u32,
    hand: usize,
}

impl VoxelMap {
    pub fn new(config: VoxelMapConfig) -> Self {
        let given = config.voxel_size > 0.0 && config.voxel_size.is_finite();
        let config = VoxelMapConfig {
            max_points: config.max_points.clamp(1, u32::MAX as usize),
            min_observations: config.min_observations.clamp(1, 1000),
            ..config
        };
        Self {
            config,
            voxel_size: given.then_some(config.voxel_size),
            voxels: Vec::new(),
            index: HashMap::default(),
            seldom_seen: vec![0; config.min_observations as usize - 1],
            clouds: 0,
            doublings: if given { DOUBLINGS } else { 0 },
            hand: 0,
        }
    }

    /// Edge of a voxel; `None` until the first cloud has set it.
    pub fn voxel_size(&self) -> Option<f32> {
        self.voxel_size
    }

    /// Adds the points of one frame, in the order of its pixels. Those that are not finite are left out. While the voxel
    /// size is still to be chosen, clouds of fewer than a hundred points are left out too.
    pub fn integrate(&mut self, points: &[MapPoint]) {
        let Some(size) = self.voxel_size.or_else(|| size::for_cloud(points)) else {
            return;
        };
        self.voxel_size = Some(size);
        let nearly_full = (self.config.max_points as f64 * NEARLY_FULL) as usize;
        if self.doublings < DOUBLINGS && self.voxels.len() > nearly_full {
            self.double_voxel_size();
        }
        let size = self.voxel_size.unwrap_or(size);
        self.clouds = self.clouds.saturating_add(1);
        // Neighbouring pixels mostly share a voxel.
        let mut last: Option<(Key, usize)> = None;
        for point in points {
            let Some(key) = key_of(point, size) else {
                continue;
            };
            let slot = match last {
                Some((last_key, slot)) if last_key == key => slot,
                _ => {
                    let slot = self.slot(key);
                    self.observe(slot);
                    slot
                }
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
        let slot = if self.voxels.len() < self.config.max_points {
            self.voxels.push(fresh);
            self.voxels.len() - 1
        } else {
            let slot = self.make_room();
            if let Some(voxel) = self.voxels.get_mut(slot) {
                *voxel = fresh;
            }
            slot
        };
        self.index.insert(key, slot as u32);
        slot
    }

    /// The slot of a voxel that the map does without from now on.
    fn make_room(&mut self) -> usize {
        loop {
            let slot = self.hand;
            self.hand = (slot + 1) % self.voxels.len().max(1);
            let Some(voxel) = self.voxels.get_mut(slot) else {
                return 0;
            };
            if voxel.spared > 0 {
                voxel.spared -= 1;
                continue;
            }
            let (key, observations) = (voxel.key, voxel.observations);
            self.index.remove(&key);
            if let Some(count) = self.seldom_seen_mut(observations) {
                *count -= 1;
            }
            return slot;
        }
    }

    /// Counts that the current cloud sees a voxel.
    fn observe(&mut self, slot: usize) {
        let Some(voxel) = self.voxels.get_mut(slot) else {
            return;
        };
        let before = voxel.observations;
        if before > 0 && voxel.last_cloud == self.clouds {
            return;
        }
        voxel.last_cloud = self.clouds;
        voxel.observations = before.saturating_add(1);
        if before > 0 {
            voxel.spared = (voxel.spared + 1).min(MAX_SPARED);
            if let Some(count) = self.seldom_seen_mut(before) {
                *count -= 1;
            }
        }
        if let Some(count) = self.seldom_seen_mut(before.saturating_add(1)) {
            *count += 1;
        }
    }

    fn seldom_seen_mut(&mut self, observations: u32) -> Option<&mut usize> {
        self.seldom_seen
            .get_mut(observations.checked_sub(1)? as usize)
    }

    /// Makes one voxel of eight.
    fn double_voxel_size(&mut self) {
        let fine = std::mem::replace(self, Self::new(self.config));
        self.voxel_size = fine.voxel_size.map(|size| size * 2.0);
        self.doublings = fine.doublings + 1;
        self.clouds = fine.clouds;
        for voxel in fine.voxels {
            let slot = self.slot(voxel.key.map(|index| index.div_euclid(2)));
            if let Some(coarse) = self.voxels.get_mut(slot) {
                coarse.merge(&voxel);
            }
        }
        for voxel in &self.voxels {
            let place = voxel.observations.saturating_sub(1) as usize;
            if let Some(count) = self.seldom_seen.get_mut(place) {
                *count += 1;
            }
        }
    }

    /// So many observations make a voxel part of the map.
    fn least_observations(&self) -> u32 {
        self.config.min_observations.min(self.clouds)
    }

    /// The map's points in an order that depends only on what was integrated.
    pub fn points(&self) -> impl ExactSizeIterator<Item = MapPoint> + '_ {
        Points {
            voxels: self.voxels.iter(),
            least: self.least_observations(),
            left: self.len(),
        }
    }

    /// How many points [`Self::points`] has.
    pub fn len(&self) -> usize {
        let hidden = self.least_observations().saturating_sub(1) as usize;
        self.voxels.len() - self.seldom_seen.iter().take(hidden).sum::<usize>()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Empties the map. A voxel size that was chosen automatically will be chosen anew.
    pub fn clear(&mut self) {
        *self = Self::new(self.config);
    }
}

struct Points<'a> {
    voxels: std::slice::Iter<'a, Voxel>,
    least: u32,
    left: usize,
}

impl Iterator for Points<'_> {
    type Item = MapPoint;

    fn next(&mut self) -> Option<MapPoint> {
        let least = self.least;
        let found = self.voxels.find(|voxel| voxel.observations >= least)?;
        self.left = self.left.saturating_sub(1);
        Some(found.point())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Points<'_> {}

impl Voxel {
    fn new(key: Key) -> Self {
        Self {
            key,
            position: [0.0; 3],
            color: [0.0; 3],
            weight: 0.0,
            points: 0,
            observations: 0,
            last_cloud: 0,
            spared: 0,
        }
    }

    fn add(&mut self, point: &MapPoint) {
        // Points without confidence count, a little.
        let weight = point.confidence.max(1e-6);
        self.points = self.points.saturating_add(1);
        self.take_mean(point.position, point.color.map(f32::from), weight);
    }

    fn merge(&mut self, other: &Self) {
        self.points = self.points.saturating_add(other.points);
        self.take_mean(other.position, other.color, other.weight);
        // How many clouds saw one of the two is not known; no fewer than this.
        self.observations = self.observations.max(other.observations);
        self.last_cloud = self.last_cloud.max(other.last_cloud);
        self.spared = self.spared.max(other.spared);
    }

    fn take_mean(&mut self, position: [f32; 3], color: [f32; 3], weight: f32) {
        self.weight += weight;
        let share = weight / self.weight;
        for (mean, value) in self.position.iter_mut().zip(position) {
            *mean += (value - *mean) * share;
        }
        for (mean, value) in self.color.iter_mut().zip(color) {
            *mean += (value - *mean) * share;
        }
    }

    fn point(&self) -> MapPoint {
        MapPoint {
            position: self.position,
            color: self.color.map(|c| c.round() as u8),
            confidence: self.weight / self.points as f32,
        }
    }
}

/// `None` for what is not finite or lies beyond the grid's two thousand million voxels each way.
fn key_of(point: &MapPoint, size: f32) -> Option<Key> {
    let cell = point.position.map(|c| (c / size).floor());
    let inside = cell.iter().all(|c| c.abs() < i32::MAX as f32);
    (inside && point.confidence.is_finite()).then(|| cell.map(|c| c as i32))
}
