//! The plot of a path's comparison.

use image::RgbImage;
use nalgebra::{Isometry3, Point3, Similarity3};

use crate::camera::Stamp;
use crate::map::evaluation::{Alignment, EvaluationError, PosePair, pose_errors};
use crate::plot::{self, BLUE, Chart, Colour, ORANGE, Series, Style};

const WIDTH: u32 = 1200;
const PATH_HEIGHT: u32 = 800;
const ERROR_HEIGHT: u32 = 300;

/// The true path and the estimate from above, and under them the errors of its poses over time, after `alignment`.
/// "Above" is the room's, where it is known; else the first camera's own up.
pub fn draw(
    pairs: &[PosePair],
    alignment: Alignment,
    room_from_world: Option<&Isometry3<f64>>,
) -> anyhow::Result<RgbImage> {
    let charts = charts(pairs, alignment, room_from_world)?;
    Ok(plot::draw(&charts, WIDTH)?)
}

fn charts(
    pairs: &[PosePair],
    alignment: Alignment,
    room_from_world: Option<&Isometry3<f64>>,
) -> Result<Vec<Chart>, EvaluationError> {
    let transform = alignment.transform(pairs)?;
    let errors = pose_errors(pairs, &transform);
    let (time_label, times) = times(pairs);
    let over_time = |name: &str, unit: &str, values: Vec<f64>| {
        let squares: f64 = values.iter().map(|value| value * value).sum();
        let rmse = (squares / values.len() as f64).sqrt();
        let largest = values.iter().copied().fold(0.0, f64::max);
        Chart {
            title: format!("{name} error: RMSE {rmse:.3} {unit}, largest {largest:.3} {unit}"),
            x_label: time_label.to_owned(),
            y_label: format!("{} error ({unit})", name.to_lowercase()),
            series: vec![Series {
                label: None,
                colour: ORANGE,
                style: Style::Line(2),
                points: times.iter().zip(values).map(|(t, v)| [*t, v]).collect(),
            }],
            equal_axes: false,
            height: ERROR_HEIGHT,
        }
    };
    let positions = errors.iter().map(|error| error.position).collect();
    let rotations = errors.iter().map(|error| error.rotation.to_degrees());
    Ok(vec![
        paths(pairs, alignment, &transform, room_from_world),
        over_time("Position", "m", positions),
        over_time("Rotation", "deg", rotations.collect()),
    ])
}

/// Seconds since the first pose, or the frames' numbers where there are no times.
fn times(pairs: &[PosePair]) -> (&'static str, Vec<f64>) {
    let stamps: Option<Vec<_>> = pairs.iter().map(|pair| pair.stamp).collect();
    match stamps.as_deref() {
        Some(stamps @ [first, ..]) => {
            let since = |stamp: &Stamp| stamp.0.saturating_sub(first.0) as f64 / 1e9;
            ("time (s)", stamps.iter().map(since).collect())
        }
        _ => ("frame", (0..pairs.len()).map(|i| i as f64).collect()),
    }
}

fn paths(
    pairs: &[PosePair],
    alignment: Alignment,
    transform: &Similarity3<f64>,
    room_from_world: Option<&Isometry3<f64>>,
) -> Chart {
    let above = |place: Point3<f64>| match room_from_world {
        Some(room_from_world) => {
            let place = room_from_world * place;
            [place.x, place.y]
        }
        // Optical axes: x to the right, z forward.
        None => [place.x, place.z],
    };
    let (x_label, y_label) = match room_from_world {
        Some(_) => ("x in the room (m)", "y in the room (m)"),
        None => ("to the right of the first camera (m)", "forward (m)"),
    };
    let place = |pose: &Isometry3<f64>| Point3::from(pose.translation.vector);
    let truth: Vec<_> = pairs.iter().map(|pair| above(place(&pair.truth))).collect();
    let estimate: Vec<_> = pairs
        .iter()
        .map(|pair| above(transform * place(&pair.estimate)))
        .collect();
    let start = |colour: Colour, radius, label: Option<&str>, path: &[[f64; 2]]| Series {
        label: label.map(str::to_owned),
        colour,
        style: Style::Dots(radius),
        points: path.iter().take(1).copied().collect(),
    };
    let starts = [
        start(BLUE, 7, Some("start"), &truth),
        start(ORANGE, 4, None, &estimate),
    ];
    let line = |label: &str, colour, points| Series {
        label: Some(label.to_owned()),
        colour,
        style: Style::Line(2),
        points,
    };
    let lines = [
        line("truth", BLUE, truth),
        line("estimate", ORANGE, estimate),
    ];
    let aligned = match alignment {
        Alignment::None => "not aligned",
        Alignment::Se3 => "aligned by SE(3)",
        Alignment::Sim3 => "aligned by Sim(3)",
    };
    Chart {
        title: format!("Path from above, {} poses, {aligned}", pairs.len()),
        x_label: x_label.to_owned(),
        y_label: y_label.to_owned(),
        series: lines.into_iter().chain(starts).collect(),
        equal_axes: true,
        height: PATH_HEIGHT,
    }
}
