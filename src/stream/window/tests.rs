use super::*;

fn stream(num_scale_frames: usize, interval: usize) -> StreamConfig {
    StreamConfig {
        num_scale_frames,
        keyframe_interval: KeyframeInterval::Every(interval),
        ..StreamConfig::default()
    }
}

const WINDOWS: WindowConfig = WindowConfig {
    window_size: 8,
    overlap_keyframes: None,
    overlap_size: None,
    alignment: WindowAlignment::Reference,
    frames: None,
};

fn starts(plan: &WindowPlan) -> Vec<usize> {
    plan.windows.iter().map(|window| window.start).collect()
}

#[test]
fn windows_are_cut_as_the_reference_cuts_them() {
    let windows = WindowConfig {
        overlap_keyframes: Some(2),
        ..WINDOWS
    };
    let plan = windows.plan(40, &stream(3, 2)).unwrap();
    assert_eq!((starts(&plan), plan.overlap), (vec![0, 9, 18, 27], 4));
    assert!(plan.windows.iter().all(|window| window.len() == 13));
    let plan = WINDOWS.plan(40, &stream(3, 1)).unwrap();
    assert_eq!((plan.windows.len(), plan.overlap), (8, 3));
    // The last window is as long as what is left.
    let plan = WINDOWS.plan(37, &stream(3, 1)).unwrap();
    assert_eq!(plan.windows.last(), Some(&(30..37)));
}

#[test]
fn every_frame_is_in_a_window_and_windows_overlap() {
    for frames in 0..60 {
        for (window_size, overlap) in [(4, 3), (8, 3), (8, 7), (20, 1)] {
            let windows = WindowConfig {
                window_size,
                overlap_size: Some(overlap),
                ..WINDOWS
            };
            let plan = windows.plan(frames, &stream(3, 1)).unwrap();
            assert_eq!(plan.windows.first().map(|window| window.start), Some(0));
            assert_eq!(plan.windows.last().map(|window| window.end), Some(frames));
            for pair in plan.windows.windows(2) {
                assert_eq!(pair[0].end - pair[1].start, plan.overlap);
                assert!(pair[1].len() > plan.overlap && pair[0].len() == window_size);
            }
        }
    }
}

#[test]
fn a_window_has_to_exceed_its_overlap() {
    let windows = WindowConfig {
        overlap_size: Some(8),
        ..WINDOWS
    };
    assert!(windows.plan(40, &stream(3, 1)).is_err());
    // One window overlaps nothing.
    assert_eq!(windows.plan(8, &stream(3, 1)).unwrap().windows, vec![0..8]);
    let few = WindowConfig {
        window_size: 3,
        ..WINDOWS
    };
    assert!(few.validate(&stream(3, 1)).is_err());
    assert!(WINDOWS.validate(&stream(3, 1)).is_ok());
    let none = WindowConfig {
        overlap_keyframes: Some(0),
        ..WINDOWS
    };
    assert!(none.validate(&stream(3, 1)).is_err());
}
