//! Voxel maps against lists of points.

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
        min_observations: 1,
    })
}

/// A wall 4 wide and 3 high, in the order of the pixels that see it, `spacing` apart.
fn wall(spacing: f32) -> Vec<MapPoint> {
    let (rows, columns) = ((3.0 / spacing) as usize, (4.0 / spacing) as usize);
    let at = |i: usize| {
        let (row, column) = (i / columns, i % columns);
        point([column as f32 * spacing, row as f32 * spacing, 2.0], 7, 2.0)
    };
    (0..rows * columns).map(at).collect()
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
fn what_many_clouds_have_seen_is_forgotten_later_but_forgotten() {
    let mut map = map(1.0, 4);
    let dear = point([0.5; 3], 200, 1.0);
    for _ in 0..3 {
        map.integrate(&[dear]);
    }
    let mut met = 0..;
    let mut lasts_for = || {
        let is_there = |map: &VoxelMap| map.points().any(|p| p.color == dear.color);
        let last = met.find(|i| {
            map.integrate(&[point([*i as f32 + 5.5, 0.5, 0.5], 1, 1.0)]);
            !is_there(&map)
        });
        last.unwrap()
    };
    // Three places are free; then each round over the other three spares it once, twice in all.
    assert_eq!(lasts_for(), 9);
}

#[test]
fn points_that_too_few_clouds_saw_are_not_shown() {
    let mut map = VoxelMap::new(VoxelMapConfig {
        voxel_size: 1.0,
        max_points: 100,
        min_observations: 3,
    });
    let at = |x: u8| point([f32::from(x) + 0.5, 0.5, 0.5], x, 1.0);
    let shown = |map: &VoxelMap| -> Vec<u8> {
        let points = map.points();
        assert_eq!(points.len(), map.len());
        points.map(|p| p.color[0]).collect()
    };
    // Twice in one cloud is once.
    map.integrate(&[at(0), at(1), at(0), at(2), at(0)]);
    assert_eq!(shown(&map), [0, 1, 2], "one cloud cannot be seen thrice");
    map.integrate(&[at(1), at(2)]);
    assert_eq!(shown(&map), [1, 2]);
    map.integrate(&[at(2), at(3)]);
    assert_eq!(shown(&map), [2]);
    for _ in 0..2 {
        map.integrate(&[at(3)]);
    }
    assert_eq!(shown(&map), [2, 3]);
}

#[test]
fn the_size_follows_the_scenes_scale() {
    let size = |scale: f32, spacing: f32| {
        let mut cloud = wall(spacing);
        for point in &mut cloud {
            point.position = point.position.map(|c| c * scale);
        }
        let mut map = map(0.0, 100_000);
        map.integrate(&cloud);
        map.voxel_size().unwrap()
    };
    let fine = size(1.0, 0.01);
    assert!((fine - 1.4 / 80.0).abs() < 0.002, "{fine}");
    assert!((size(100.0, 0.01) / fine / 100.0 - 1.0).abs() < 1e-3);
    let coarse = size(1.0, 0.04);
    assert!((coarse - 0.04).abs() < 1e-4, "one pixel a voxel: {coarse}");
    assert!((size(1.0, 0.2) / fine / 3.0 - 1.0).abs() < 0.1);
}

#[test]
fn a_size_that_follows_the_scene_doubles_before_anything_is_lost() {
    let mut map = VoxelMap::new(VoxelMapConfig {
        max_points: 20_000,
        min_observations: 2,
        ..VoxelMapConfig::default()
    });
    let near = wall(0.05);
    map.integrate(&near);
    let before = map.voxel_size().unwrap();
    // A second wall behind the first, and so on.
    let behind = |distance: f32| -> Vec<MapPoint> {
        let moved = near.iter().map(|p| MapPoint {
            position: [p.position[0], p.position[1], 2.0 + distance],
            ..*p
        });
        moved.collect()
    };
    for distance in 1..5 {
        for _ in 0..2 {
            map.integrate(&behind(distance as f32));
        }
    }
    assert_eq!(map.voxel_size(), Some(before * 2.0));
    let reach = |map: &VoxelMap| {
        map.points()
            .map(|p| p.position[2])
            .fold(f32::INFINITY, f32::min)
    };
    assert_eq!(map.len(), map.points().count());
    assert_eq!(reach(&map), 3.0, "the first wall was seen once");
    map.integrate(&near);
    assert_eq!(reach(&map), 2.0, "and is still known");
    for distance in 5..100 {
        map.integrate(&behind(distance as f32));
    }
    assert_eq!(map.voxel_size(), Some(before * 4.0), "not without end");
    assert!(map.voxels.len() <= 20_000 && map.index.len() == map.voxels.len());
    map.clear();
    map.integrate(&near);
    assert_eq!(map.voxel_size(), Some(before));
}

#[test]
fn a_given_size_stays() {
    let mut map = map(0.1, 300);
    for _ in 0..3 {
        map.integrate(&wall(0.1));
    }
    assert_eq!((map.voxel_size(), map.len()), (Some(0.1), 300));
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
    fn it_never_grows_beyond_its_limit_and_counts_right(
        limit in 1usize..40,
        counts in prop::collection::vec(0usize..150, 1..8),
        min_observations in 0u32..5,
    ) {
        let mut map = VoxelMap::new(VoxelMapConfig {
            voxel_size: 0.05,
            max_points: limit,
            min_observations,
        });
        for count in counts {
            map.integrate(&cloud(count, 1.0));
            prop_assert!(map.voxels.len() <= limit && map.index.len() == map.voxels.len());
            for (slot, voxel) in map.voxels.iter().enumerate() {
                prop_assert_eq!(map.index.get(&voxel.key), Some(&(slot as u32)));
            }
            prop_assert_eq!(map.len(), map.points().count());
            for (before, &count) in map.seldom_seen.iter().enumerate() {
                let found = map.voxels.iter().filter(|v| v.observations as usize == before + 1);
                prop_assert_eq!(found.count(), count);
            }
        }
    }
}
