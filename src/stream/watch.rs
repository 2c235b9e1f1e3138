//! Notices when the network has lost its way.

use std::collections::VecDeque;

use nalgebra::Isometry3;

use super::Prediction;
use crate::camera::NetworkSize;
use crate::geometry::decode_pose;

/// What is wrong with a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symptom {
    /// It holds no pose, or hardly any depth.
    Invalid,
    /// The camera is much farther from where it was than it ever moved, compared with the depth of the scene.
    PoseJump,
    /// Confidence has all but vanished.
    Confidence,
    /// The scene is many times nearer or farther than before.
    Depth,
    /// The field of view is another.
    FieldOfView,
}

/// Symptoms in a row that are a collapse; fewer may be a single bad image.
const PERSISTS: usize = 3;
/// Healthy frames that a judgement needs.
const LEAST_HEALTHY: usize = 8;
/// Healthy frames that it looks back on.
const MEMORY: usize = 32;
/// Times the usual step, and times the scene's depth, that a jump exceeds; one step more for every frame since the last
/// healthy one.
const JUMP: (f64, f64) = (9.0, 0.5);
/// Share of the usual confidence (beyond 1, where the network knows nothing) that is too little.
const FAINT: f64 = 0.03;
/// Times the usual depth, or its inverse.
const DEPTH_FACTOR: f64 = 6.0;
/// Times the usual field of view, or its inverse.
const FIELD_OF_VIEW_FACTOR: f64 = 1.35;

/// Compares each frame with the healthy ones before it.
#[derive(Debug, Default)]
pub struct CollapseWatch {
    steps: Recent,
    confidences: Recent,
    depths: Recent,
    fields_of_view: Recent,
    last_healthy: Option<Isometry3<f64>>,
    /// Frames since then.
    sick: usize,
}

/// The last values of healthy frames.
#[derive(Debug, Default)]
struct Recent(VecDeque<f64>);

impl Recent {
    fn push(&mut self, value: f64) {
        if self.0.len() == MEMORY {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    /// The median, once there are enough.
    fn usual(&self) -> Option<f64> {
        if self.0.len() < LEAST_HEALTHY {
            return None;
        }
        median(self.0.iter().copied().collect())
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let middle = values.len() / 2;
    Some(*values.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// Whether two positive numbers differ by more than a factor.
fn differs(value: f64, usual: f64, factor: f64) -> bool {
    !(value < usual * factor && value * factor > usual)
}

struct Reading {
    pose: Isometry3<f64>,
    depth: f64,
    confidence: f64,
    field_of_view: f64,
}

impl Reading {
    fn of(prediction: &Prediction, size: NetworkSize) -> Option<Self> {
        let (pose, _) = decode_pose(&prediction.pose_enc, size).ok()?;
        let valid = |values: &ndarray::Array2<f32>| -> Vec<f64> {
            let values = values.iter().map(|value| f64::from(*value));
            values
                .filter(|value| value.is_finite() && *value > 0.0)
                .collect()
        };
        let depths = valid(&prediction.depth);
        if 2 * depths.len() < prediction.depth.len() {
            return None;
        }
        Some(Self {
            pose,
            depth: median(depths)?,
            confidence: median(valid(&prediction.depth_conf))? - 1.0,
            field_of_view: f64::from(prediction.pose_enc[8]),
        })
    }
}

impl CollapseWatch {
    /// Judges the next frame. Lengths must be of one world throughout.
    pub fn judge(&mut self, prediction: &Prediction, size: NetworkSize) -> Option<Symptom> {
        self.sick += 1;
        let Some(reading) = Reading::of(prediction, size) else {
            return Some(Symptom::Invalid);
        };
        let moved = self.last_healthy.map(|last| {
            let way = reading.pose.translation.vector - last.translation.vector;
            way.norm()
        });
        let symptom = self.symptom(&reading, moved);
        if symptom.is_none() {
            self.depths.push(reading.depth);
            self.confidences.push(reading.confidence);
            self.fields_of_view.push(reading.field_of_view);
            if let Some(moved) = moved {
                self.steps.push(moved / self.sick as f64);
            }
            self.last_healthy = Some(reading.pose);
            self.sick = 0;
        }
        symptom
    }

    fn symptom(&self, reading: &Reading, moved: Option<f64>) -> Option<Symptom> {
        let usual_depth = self.depths.usual()?;
        if let (Some(moved), Some(usual)) = (moved, self.steps.usual())
            && moved > (JUMP.0 + self.sick as f64) * usual
            && moved > JUMP.1 * usual_depth
        {
            return Some(Symptom::PoseJump);
        }
        if differs(reading.depth, usual_depth, DEPTH_FACTOR) {
            return Some(Symptom::Depth);
        }
        if reading.confidence < FAINT * self.confidences.usual()? {
            return Some(Symptom::Confidence);
        }
        let usual = self.fields_of_view.usual()?;
        differs(reading.field_of_view, usual, FIELD_OF_VIEW_FACTOR).then_some(Symptom::FieldOfView)
    }

    /// Whether the last frames were all sick.
    pub fn has_collapsed(&self) -> bool {
        self.sick >= PERSISTS
    }

    /// Starts to look again after a restart; what is usual stays known.
    pub fn restart(&mut self) {
        self.sick = 0;
        self.last_healthy = None;
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::Similarity3;
    use ndarray::Array2;

    use super::*;
    use crate::stream::FrameType;

    const SIZE: NetworkSize = NetworkSize {
        height: 28,
        width: 28,
    };

    /// A frame of a walk of 0.1 a frame before a wall at a distance of 3, which `fault` may spoil.
    fn frame(index: usize, fault: impl Fn(&mut Prediction)) -> Prediction {
        let mut prediction = Prediction {
            index: index as u64,
            frame_type: FrameType::Keyframe,
            pose_enc: [0.1 * index as f32, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.9, 1.1],
            depth: Array2::from_elem((28, 28), 3.0),
            depth_conf: Array2::from_elem((28, 28), 9.0),
            world_points: None,
            window: 0,
            world_from_window: Similarity3::identity(),
            symptom: None,
        };
        fault(&mut prediction);
        prediction
    }

    /// Symptoms of 20 healthy frames, `sick` spoilt ones and 5 healthy ones, and whether it was a collapse.
    fn watch(sick: usize, fault: impl Fn(&mut Prediction)) -> (Vec<Option<Symptom>>, bool) {
        let mut watch = CollapseWatch::default();
        let (mut symptoms, mut collapsed) = (Vec::new(), false);
        for index in 0..25 + sick {
            let spoilt = (20..20 + sick).contains(&index);
            let prediction = frame(index, |frame| {
                if spoilt {
                    fault(frame);
                }
            });
            symptoms.push(watch.judge(&prediction, SIZE));
            collapsed |= watch.has_collapsed();
        }
        (symptoms, collapsed)
    }

    fn collapses_by(symptom: Symptom, fault: impl Fn(&mut Prediction)) {
        let (symptoms, collapsed) = watch(3, fault);
        assert!(symptoms[..20].iter().all(Option::is_none));
        assert_eq!(symptoms[20..23], [Some(symptom); 3]);
        assert!(symptoms[23..].iter().all(Option::is_none), "{symptoms:?}");
        assert!(collapsed);
    }

    #[test]
    fn each_planted_fault_is_found_by_its_name() {
        collapses_by(Symptom::Invalid, |frame| frame.pose_enc[0] = f32::NAN);
        collapses_by(Symptom::Invalid, |frame| frame.depth.fill(f32::INFINITY));
        collapses_by(Symptom::PoseJump, |frame| frame.pose_enc[1] = 40.0);
        collapses_by(Symptom::Depth, |frame| frame.depth.fill(0.2));
        collapses_by(Symptom::Depth, |frame| frame.depth.fill(30.0));
        collapses_by(Symptom::Confidence, |frame| frame.depth_conf.fill(1.1));
        collapses_by(Symptom::FieldOfView, |frame| frame.pose_enc[8] = 0.5);
    }

    #[test]
    fn a_single_bad_image_is_no_collapse() {
        let (symptoms, collapsed) = watch(2, |frame| frame.depth.fill(0.1));
        assert_eq!(symptoms.iter().flatten().count(), 2);
        assert!(!collapsed);
    }

    #[test]
    fn a_quick_step_and_a_new_room_are_no_symptoms() {
        // Three times as fast, twice as far, half as sure.
        let (symptoms, _) = watch(3, |frame| {
            frame.pose_enc[0] += 0.3;
            frame.depth.fill(6.0);
            frame.depth_conf.fill(5.0);
        });
        assert!(symptoms.iter().all(Option::is_none), "{symptoms:?}");
    }
}
