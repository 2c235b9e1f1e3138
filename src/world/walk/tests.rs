use super::*;
use crate::world::path::CLEARANCE;
use crate::world::tests::room;

const SEEDS: u64 = 40;
const FRAMES: usize = 300;

fn config(seed: u64) -> WalkConfig {
    WalkConfig {
        seed,
        turn: 150f64.to_radians(),
        style: Style::HandHeld,
    }
}

fn poses(config: &WalkConfig) -> Vec<Isometry3<f64>> {
    Walk::new(room(), config).take(FRAMES).collect()
}

/// Heading, pitch and roll in degrees, from the camera's axes alone.
fn angles(pose: &Isometry3<f64>) -> [f64; 3] {
    let forward = pose * Vector3::z();
    let right = pose * Vector3::x();
    let level_right = forward.cross(&Vector3::z()).normalize();
    let roll = right.dot(&forward.cross(&level_right)).asin();
    [forward.y.atan2(forward.x), forward.z.asin(), roll].map(f64::to_degrees)
}

/// Changes of heading from frame to frame, degrees.
fn turns(poses: &[Isometry3<f64>]) -> Vec<f64> {
    let headings: Vec<f64> = poses.iter().map(|pose| angles(pose)[0]).collect();
    headings
        .windows(2)
        .map(|pair| (pair[1] - pair[0] + 180.0).rem_euclid(360.0) - 180.0)
        .collect()
}

#[test]
fn a_walk_keeps_its_distance_and_its_limits() {
    for seed in 0..SEEDS {
        let poses = poses(&config(seed));
        for pose in &poses {
            let place = pose.translation.vector;
            assert!(
                room().clearance(place.x, place.y) >= CLEARANCE,
                "{seed}: {place}"
            );
            assert!(
                room().distance(place.into()) >= CLEARANCE,
                "{seed}: {place}"
            );
            assert!((1.1..=1.7).contains(&place.z), "{seed}: height {}", place.z);
            let [_, pitch, roll] = angles(pose);
            assert!(
                pitch.abs() <= 15.0 && roll.abs() <= 5.0,
                "{seed}: {pitch}, {roll}"
            );
        }
        for pair in poses.windows(2) {
            let step = (pair[1].translation.vector - pair[0].translation.vector).norm();
            assert!((0.03..=0.12).contains(&step), "{seed}: a step of {step} m");
        }
        let mut heading: f64 = 0.0;
        for turn in turns(&poses) {
            heading += turn;
            assert!(turn.abs() <= 6.0, "{seed}: turns by {turn} degrees");
            assert!(
                heading.abs() <= 150.0 + 1e-6,
                "{seed}: turned to {heading} degrees"
            );
        }
    }
}

#[test]
fn walks_see_most_of_the_room() {
    let mut visited = 0.0;
    let mut turned = 0.0;
    for seed in 0..SEEDS {
        let poses = poses(&config(seed));
        visited += visited_share(&poses);
        let headings = turns(&poses)
            .into_iter()
            .scan(0.0, |heading: &mut f64, turn| {
                *heading += turn;
                Some(*heading)
            });
        let (low, high) = headings.fold((0.0, 0.0), |(low, high): (f64, f64), heading| {
            (low.min(heading), high.max(heading))
        });
        turned += high - low;
    }
    let (visited, turned) = (visited / SEEDS as f64, turned / SEEDS as f64);
    assert!(
        visited > 0.6,
        "a walk comes near {visited} of the free places"
    );
    assert!(turned > 220.0, "headings of a walk span {turned} degrees");
}

/// The share of the free places that a path comes nearer to than half a metre.
fn visited_share(poses: &[Isometry3<f64>]) -> f64 {
    let grid = |count: i32, step: f64| (-count..=count).map(move |i| f64::from(i) * step);
    let free: Vec<(f64, f64)> = grid(15, 0.2)
        .flat_map(|x| grid(12, 0.2).map(move |y| (x, y)))
        .filter(|(x, y)| room().clearance(*x, *y) >= CLEARANCE)
        .collect();
    let near = |(x, y): &&(f64, f64)| {
        let mut places = poses.iter().map(|pose| pose.translation.vector);
        places.any(|place| (place.x - x).hypot(place.y - y) < 0.5)
    };
    // About 4 m by 3 m.
    assert!(free.len() as f64 * 0.04 > 10.0);
    free.iter().filter(near).count() as f64 / free.len() as f64
}

#[test]
fn walks_start_anywhere_and_depend_on_the_seed_alone() {
    let first = |seed| Walk::new(room(), &config(seed)).next().unwrap();
    let starts: Vec<_> = (0..SEEDS).map(first).collect();
    for axis in 0..2 {
        let along = || starts.iter().map(|pose| pose.translation.vector[axis]);
        let span = along().fold(f64::MIN, f64::max) - along().fold(f64::MAX, f64::min);
        assert!(span > 2.0, "starts span {span} m");
    }
    for quadrant in [-180.0, -90.0, 0.0, 90.0] {
        let within = |pose: &&Isometry3<f64>| {
            let heading = angles(pose)[0];
            (quadrant..quadrant + 90.0).contains(&heading)
        };
        assert!(starts.iter().filter(within).count() > 2);
    }
    assert_eq!(poses(&config(7)), poses(&config(7)));
    assert_ne!(poses(&config(7)), poses(&config(8)));
}

#[test]
fn a_robot_stays_level_and_a_turn_of_zero_looks_one_way() {
    let config = WalkConfig {
        turn: 0.0,
        style: Style::Robot,
        ..config(3)
    };
    let poses = poses(&config);
    let [first_heading, ..] = angles(&poses[0]);
    for pose in &poses {
        let [heading, pitch, roll] = angles(pose);
        assert!((heading - first_heading).abs() < 1e-9);
        assert!((pitch - ROBOT_PITCH.to_degrees()).abs() < 1e-9);
        assert!(roll.abs() < 1e-9);
        assert_eq!(pose.translation.z, 1.2);
    }
}
