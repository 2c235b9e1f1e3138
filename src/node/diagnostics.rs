//! The node's state as `diagnostic_msgs`, for `/diagnostics` once a second.

use std::time::{Duration, Instant};

use r2r::{
    diagnostic_msgs::msg::{DiagnosticArray, DiagnosticStatus, KeyValue},
    std_msgs::msg::Header,
};

use super::{
    health::{Snapshot, memory},
    logging::without_nul,
    parameters::Parameters,
    statistics::Rate,
};
use crate::{
    camera::Stamp,
    mapper::{MapperState, MapperStatus},
};

const OK: u8 = 0;
const WARN: u8 = 1;
const ERROR: u8 = 2;

/// How long no image may come before that is worth a warning.
const SILENCE: Duration = Duration::from_secs(5);

/// How keys and values are kept between frames: in arenas of this process that move to a larger one when full.
const CACHE_MODE: &str = "arenas, doubled when full";

/// What the report needs beside the snapshot.
pub struct Context<'a> {
    /// Full name of the node.
    pub node: &'a str,
    pub image_topic: &'a str,
    pub parameters: &'a Parameters,
    pub started: Instant,
    /// Frames overtaken by newer ones.
    pub dropped: u64,
}

pub fn report(stamp: Stamp, state: &Snapshot, context: &Context) -> DiagnosticArray {
    let (level, message) = summary(state, context);
    let age = (state.last_mapped).map(|newest| (stamp.0 - newest.0) as f64 * 1e-9);
    let status = DiagnosticStatus {
        level,
        name: without_nul(&format!(
            "{}: mapping",
            context.node.trim_start_matches('/')
        )),
        message: without_nul(&message),
        hardware_id: without_nul(&state.camera_frame),
        values: values(state, context, age)
            .into_iter()
            .map(|(key, value)| KeyValue {
                key,
                value: without_nul(&value),
            })
            .collect(),
    };
    let header: Header = super::messages::header(stamp, "");
    DiagnosticArray {
        header,
        status: vec![status],
    }
}

/// Level and a sentence that says what to do.
fn summary(state: &Snapshot, context: &Context) -> (u8, String) {
    let Some(mapper) = &state.mapper else {
        return (OK, "loading the model".into());
    };
    if state.is_paused {
        return (
            OK,
            "paused: call the service pause with false to go on".into(),
        );
    }
    if let Some(text) = silence(state, context) {
        return (WARN, text);
    }
    let refused = state.refused.iter().max_by_key(|(_, count)| **count);
    match (mapper.state, refused) {
        (MapperState::Waiting, Some((reason, count))) => (
            WARN,
            format!("no image could be used, {count} refused as {reason}: see the log for the first of them"),
        ),
        (MapperState::Lost, _) => (
            ERROR,
            "the network has lost its way and the last frame is not mapped: take the camera back to where it mapped, call reset, or set on_collapse"
                .into(),
        ),
        (MapperState::Mapping, _) if mapper.map_points == 0 => (
            WARN,
            "frames are mapped, but no point passes: lower conf_threshold, or check the model with lingbot_map info"
                .into(),
        ),
        _ => match field_of_view_warning(state, context.parameters) {
            Some(text) => (WARN, text),
            None => (OK, state_name(mapper)),
        },
    }
}

/// Says so when no image has come for long, and why, as far as that is known.
pub fn silence(state: &Snapshot, context: &Context) -> Option<String> {
    let silent = state.arrivals.newest().unwrap_or(context.started).elapsed();
    if silent <= SILENCE {
        return None;
    }
    let advice = match (&state.publishers.mismatch, state.publishers.seen) {
        (Some(mismatch), _) => mismatch,
        (None, 0) => "is the camera running, and is image_topic its topic?",
        (None, _) => "is the camera sending, and do large messages get through?",
    };
    Some(format!(
        "no images on {} for {} s (QoS {}, depth {}; publishers seen: {}): {advice}",
        context.image_topic,
        silent.as_secs(),
        context.parameters.qos_reliability,
        context.parameters.qos_depth,
        state.publishers.seen
    ))
}

pub fn field_of_view_warning(state: &Snapshot, parameters: &Parameters) -> Option<String> {
    let seen = state.field_of_view?;
    (seen.difference() > parameters.field_of_view_warning).then(|| {
        format!(
            "the network sees a field of view of {:.0} degrees, the calibration says {:.0}: check camera_info, or set intrinsics to predicted",
            seen.predicted, seen.calibrated
        )
    })
}

fn state_name(mapper: &MapperStatus) -> String {
    match mapper.state {
        MapperState::Waiting => "waiting for images".into(),
        MapperState::Initialising { have, need } => format!("initialising {have}/{need}"),
        MapperState::Mapping => "mapping".into(),
        MapperState::Lost => "lost".into(),
    }
}

fn values(state: &Snapshot, context: &Context, age: Option<f64>) -> Vec<(String, String)> {
    let mut values: Vec<(String, String)> = Vec::new();
    let mut add = |key: &str, value: String| values.push((key.to_string(), value));
    let now = Instant::now();
    add(
        "state",
        match &state.mapper {
            None => "starting".into(),
            Some(_) if state.is_paused => "paused".into(),
            Some(mapper) => state_name(mapper),
        },
    );
    add("frames in", state.received.to_string());
    let rate = |rate: &Rate| format!("{:.1}", rate.per_second(now));
    add("input rate Hz", rate(&state.arrivals));
    add("mapped rate Hz", rate(&state.mapped));
    if let Some(age) = age {
        add("age of the newest mapped image s", format!("{age:.3}"));
    }
    if let Some((mean, high)) = state.latencies.summary() {
        add("latency mean s", format!("{:.3}", mean.as_secs_f64()));
        add("latency 95 % s", format!("{:.3}", high.as_secs_f64()));
    }
    add("frames mapped", state.frames_mapped.to_string());
    add("frames dropped", context.dropped.to_string());
    add("frames while paused", state.paused_frames.to_string());
    add(
        "frames refused",
        state.refused.values().sum::<u64>().to_string(),
    );
    for (reason, count) in &state.refused {
        add(&format!("refused: {reason}"), count.to_string());
    }
    add("new maps by clock jumps", state.clock_jumps.to_string());
    add("new maps by gaps", state.new_maps_by_gap.to_string());
    add("new maps by sizes", state.new_maps_by_size.to_string());
    add("gaps", state.gaps.to_string());
    add("keyframes", state.keyframes.to_string());
    add("scale", state.scale.clone());
    add("transforms unusable", state.unusable_transforms.to_string());
    add("odometry missing", state.odometry_missing.to_string());
    add("image publishers", state.publishers.seen.to_string());
    add("calibration", state.calibration.clone());
    if let Some(seen) = &state.field_of_view {
        add("field of view predicted", format!("{:.1}", seen.predicted));
        add(
            "field of view calibrated",
            format!("{:.1}", seen.calibrated),
        );
    }
    if let Some(seconds) = state.seconds_per_frame() {
        add("seconds per frame", format!("{seconds:.3}"));
    }
    if let Some(mapper) = &state.mapper {
        add(
            "last step seconds",
            format!("{:.3}", mapper.last_step.as_secs_f64()),
        );
        add("map points", mapper.map_points.to_string());
        add("windows", mapper.windows.to_string());
        add("collapses", mapper.collapses.to_string());
        add("frames left out, still", mapper.still_frames.to_string());
        // Frames that came back as refused are counted above.
        let unheard = |reason: &&str| !state.refused.contains_key(reason);
        for (reason, count) in mapper.rejected.iter().filter(|(reason, _)| unheard(reason)) {
            add(&format!("not mapped: {reason}"), count.to_string());
        }
        add("provider", mapper.provider.to_string());
        let (tokens, camera) = (&mapper.token_cache, &mapper.camera_cache);
        add("cache mode", CACHE_MODE.into());
        add("cache capacity tokens", tokens.capacity.to_string());
        add("cache fill tokens", tokens.valid.to_string());
        add("cache moves", (tokens.moves + camera.moves).to_string());
        add(
            "cache MB",
            ((tokens.bytes + camera.bytes) / 1_000_000).to_string(),
        );
    }
    if let Some((now, peak)) = memory() {
        add("memory MB", (now / 1_000_000).to_string());
        add("memory peak MB", (peak / 1_000_000).to_string());
    }
    add("image topic", context.image_topic.to_string());
    values
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::node::health::FieldOfView;
    use crate::{runtime::Provider, stream::CacheStatus};

    fn report_of(state: &Snapshot, started: Instant) -> DiagnosticStatus {
        let context = Context {
            node: "/front/lingbot_map",
            image_topic: "/image",
            parameters: &Parameters::default(),
            started,
            dropped: 7,
        };
        report(Stamp(1), state, &context).status.remove(0)
    }

    fn waiting() -> MapperStatus {
        MapperStatus {
            state: MapperState::Waiting,
            frames_in: 0,
            frames_mapped: 0,
            rejected: BTreeMap::new(),
            still_frames: 0,
            provider: Provider::Cpu,
            token_cache: CacheStatus::default(),
            camera_cache: CacheStatus::default(),
            windows: 1,
            collapses: 0,
            last_step: Duration::ZERO,
            map_points: 0,
        }
    }

    fn value<'a>(status: &'a DiagnosticStatus, key: &str) -> Option<&'a str> {
        status
            .values
            .iter()
            .find(|pair| pair.key == key)
            .map(|pair| pair.value.as_str())
    }

    #[test]
    fn counts_and_reasons_are_reported() {
        let mut state = Snapshot {
            received: 12,
            frames_mapped: 3,
            ..Default::default()
        };
        state.refused.insert("short_data", 2);
        state.mapping_time = Duration::from_millis(600);
        let status = report_of(&state, Instant::now());
        assert_eq!(status.name, "front/lingbot_map: mapping");
        assert_eq!(status.message, "loading the model");
        assert_eq!(value(&status, "frames in"), Some("12"));
        assert_eq!(value(&status, "frames dropped"), Some("7"));
        assert_eq!(value(&status, "refused: short_data"), Some("2"));
        assert_eq!(value(&status, "seconds per frame"), Some("0.200"));
    }

    #[test]
    fn silence_is_a_warning_that_names_the_topic() {
        let Some(long_ago) = Instant::now().checked_sub(Duration::from_secs(60)) else {
            return;
        };
        let state = Snapshot {
            mapper: Some(waiting()),
            ..Default::default()
        };
        let status = report_of(&state, long_ago);
        assert_eq!(status.level, WARN);
        assert!(
            status.message.contains("/image for 60 s"),
            "{}",
            status.message
        );
        assert!(status.message.contains("publishers seen: 0"));
        assert_eq!(report_of(&state, Instant::now()).level, OK);
    }

    #[test]
    fn a_field_of_view_that_differs_is_a_warning() {
        let mut state = Snapshot {
            mapper: Some(waiting()),
            field_of_view: Some(FieldOfView {
                predicted: 70.0,
                calibrated: 75.0,
            }),
            ..Default::default()
        };
        assert_eq!(report_of(&state, Instant::now()).level, OK);
        if let Some(seen) = &mut state.field_of_view {
            seen.calibrated = 95.0;
        }
        let status = report_of(&state, Instant::now());
        assert_eq!(status.level, WARN);
        assert!(status.message.contains("70") && status.message.contains("95"));
    }
}
