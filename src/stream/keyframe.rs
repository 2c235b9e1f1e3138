//! Which streamed frames are stored.

use std::fmt;
use std::str::FromStr;

/// Stored frames that the released network was trained with; beyond, its poses drift (an ablation on Oxford Spires found
/// an ATE of 29 with every frame stored against 5.2 with an interval that stays within).
pub const TRAINED_VIEWS: usize = 320;

/// Frames between keyframes at most, where a flow threshold decides and nothing else is asked for.
const FLOW_MODE_GAP: usize = 30;

/// Every how many frames one may be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyframeInterval {
    /// A fixed number, at least 1.
    Every(usize),
    /// For streams of unknown length: starts at 1 and doubles whenever the frames so far would have filled
    /// [`TRAINED_VIEWS`], while the frames stored before are thinned out alike.
    Auto,
}

impl KeyframeInterval {
    /// The smallest interval that keeps a stream of `frames` frames within [`TRAINED_VIEWS`] stored ones.
    pub fn for_frames(frames: usize, num_scale_frames: usize) -> Self {
        let streamed = frames.saturating_sub(num_scale_frames);
        let room = TRAINED_VIEWS.saturating_sub(num_scale_frames).max(1);
        Self::Every(streamed.div_ceil(room).max(1))
    }
}

impl FromStr for KeyframeInterval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Self::Auto),
            Ok(interval) if interval > 0 => Ok(Self::Every(interval)),
            _ => Err("use a number from 1 on, or auto".into()),
        }
    }
}

impl fmt::Display for KeyframeInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every(interval) => interval.fmt(f),
            Self::Auto => f.write_str("auto"),
        }
    }
}

/// Decides frame by frame. The first frame after the scale frames is a keyframe; then the interval admits frames, of which
/// a flow threshold takes those that moved enough; a gap that has grown too large overrules both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyframeRule {
    interval: KeyframeInterval,
    flow_threshold: Option<f64>,
    max_gap: Option<usize>,
    /// The interval of now.
    every: usize,
    streamed: usize,
    /// Frames from the last keyframe, or the last scale frame, to the next frame.
    since: usize,
}

/// What is known about a frame before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Store,
    Forget,
    /// Runs unstored; [`KeyframeRule::accepts`] decides by what it shows.
    Await,
}

impl KeyframeRule {
    /// `flow_threshold` in pixels. Without a `max_gap` the flow rule stores at least every 30th frame; the interval alone
    /// knows no gap.
    pub fn new(
        interval: KeyframeInterval,
        flow_threshold: Option<f64>,
        max_gap: Option<usize>,
    ) -> Self {
        Self {
            interval,
            flow_threshold,
            max_gap: max_gap.or(flow_threshold.map(|_| FLOW_MODE_GAP)),
            every: match interval {
                KeyframeInterval::Every(interval) => interval.max(1),
                KeyframeInterval::Auto => 1,
            },
            streamed: 0,
            since: 1,
        }
    }

    /// About the next frame. With a flow threshold every frame that may be stored runs unstored first, as in the reference
    /// implementation.
    pub fn verdict(&self) -> Verdict {
        if !self.admits() && !self.gap_is_due() {
            Verdict::Forget
        } else if self.flow_threshold.is_some() {
            Verdict::Await
        } else {
            Verdict::Store
        }
    }

    /// Whether an awaited frame that moved by `flow` pixels against the last keyframe is to be stored.
    pub fn accepts(&self, flow: f64) -> bool {
        self.streamed == 0
            || self.gap_is_due()
            || self.flow_threshold.is_none_or(|threshold| flow > threshold)
    }

    /// Moves on by one frame, which was stored or not.
    pub fn advance(&mut self, stored: bool) {
        self.streamed += 1;
        self.since = if stored { 1 } else { self.since + 1 };
        if self.interval == KeyframeInterval::Auto && self.streamed >= self.every * TRAINED_VIEWS {
            self.every *= 2;
        }
    }

    fn admits(&self) -> bool {
        self.streamed.is_multiple_of(self.every)
    }

    fn gap_is_due(&self) -> bool {
        self.max_gap.is_some_and(|gap| self.since >= gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Indices of stored frames, of `flows.len()`.
    fn stored(mut rule: KeyframeRule, flows: &[f64]) -> Vec<usize> {
        let mut taken = Vec::new();
        for (index, &flow) in flows.iter().enumerate() {
            let store = match rule.verdict() {
                Verdict::Store => true,
                Verdict::Forget => false,
                Verdict::Await => rule.accepts(flow),
            };
            rule.advance(store);
            if store {
                taken.push(index);
            }
        }
        taken
    }

    #[test]
    fn the_first_frame_and_every_third_after_it_are_keyframes() {
        let rule = KeyframeRule::new(KeyframeInterval::Every(3), None, None);
        assert_eq!(stored(rule, &[0.0; 8]), [0, 3, 6]);
    }

    #[test]
    fn flow_decides_among_the_frames_that_the_interval_admits() {
        let flows = [0.0, 9.0, 5.0, 9.0, 5.1, 9.0, 0.0, 9.0, 9.0];
        let every = KeyframeInterval::Every;
        assert_eq!(
            stored(KeyframeRule::new(every(1), Some(5.0), None), &flows),
            [0, 1, 3, 4, 5, 7, 8]
        );
        assert_eq!(
            stored(KeyframeRule::new(every(2), Some(5.0), None), &flows),
            [0, 4, 8]
        );
    }

    #[test]
    fn a_gap_overrules_interval_and_flow() {
        let every = KeyframeInterval::Every;
        let still = [0.0; 70];
        let rule = KeyframeRule::new(every(1), Some(5.0), None);
        assert_eq!(stored(rule, &still), [0, 30, 60]);
        // 7 is not a multiple of 4: the gap wins there, and the interval goes on counting from the start.
        let rule = KeyframeRule::new(every(4), Some(5.0), Some(7));
        assert_eq!(stored(rule, &still[..30]), [0, 7, 14, 21, 28]);
        let rule = KeyframeRule::new(every(50), None, Some(20));
        assert_eq!(stored(rule, &still), [0, 20, 40, 50]);
    }

    #[test]
    fn a_known_length_gives_the_smallest_interval_within_the_trained_range() {
        let interval = |frames| match KeyframeInterval::for_frames(frames, 8) {
            KeyframeInterval::Every(interval) => interval,
            KeyframeInterval::Auto => unreachable!("a length is known"),
        };
        for (frames, expected) in [
            (1, 1),
            (320, 1),
            (321, 2),
            (632, 2),
            (633, 3),
            (100_000, 321),
        ] {
            assert_eq!(interval(frames), expected, "{frames}");
        }
        for frames in [5usize, 400, 1000, 4567] {
            let stored = 8 + frames.saturating_sub(8).div_ceil(interval(frames));
            assert!(stored <= TRAINED_VIEWS, "{frames}: {stored}");
        }
    }

    #[test]
    fn an_unknown_length_doubles_the_interval_as_it_goes() {
        let rule = KeyframeRule::new(KeyframeInterval::Auto, None, None);
        let taken = stored(rule, &[0.0; 2000]);
        assert!((0..320).all(|index| taken[index] == index));
        assert_eq!(taken[320..324], [320, 322, 324, 326]);
        // 320, then 160 for every doubling of the length.
        assert_eq!(taken.iter().filter(|&&index| index < 640).count(), 480);
        assert_eq!(taken.iter().filter(|&&index| index < 1280).count(), 640);
    }

    #[test]
    fn intervals_are_read_and_shown_alike() {
        for text in ["auto", "1", "12"] {
            assert_eq!(text.parse::<KeyframeInterval>().unwrap().to_string(), text);
        }
        for text in ["0", "-1", "automatic", ""] {
            assert!(text.parse::<KeyframeInterval>().is_err(), "{text}");
        }
    }
}
