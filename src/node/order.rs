//! Whether an image continues the stream: its stamp against those before.
//!
//! Images are judged as they arrive, whether or not there will be time to map them.

use crate::camera::Stamp;

/// An image this much later than the one before may have a broken stamp: the next image decides.
const IMPLAUSIBLE_GAP: f64 = 10.0;

/// What the rules depend on, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OrderRules {
    /// Going back by more begins a new map, by less is refused.
    pub clock_jump: f64,
    /// A longer gap begins a new map; 0: none does.
    pub new_map_gap: f64,
    /// A longer gap is counted.
    pub gap_warning: f64,
}

/// What an image is to the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Continues,
    /// Continues after a gap that is worth counting.
    AfterGap,
    NewMap(NewMap),
    Refused(Disorder),
}

/// Why a new map begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewMap {
    ClockWentBack,
    Gap,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Disorder {
    #[error("the stamp is that of the image before")]
    Repeated,
    #[error("the stamp is earlier than that of the image before")]
    NotLater,
    #[error("the stamp is far from that of the image before, and the next image has to confirm it")]
    Jump,
}

impl Disorder {
    /// A stable label of the kind of fault, for counting.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Repeated => "stamp_repeated",
            Self::NotLater => "stamp_not_later",
            Self::Jump => "stamp_jump",
        }
    }
}

/// Follows the images of a stream. A stamp far off, either way, may be the first after a clock was set or a bag began
/// anew, or a single broken one: such an image is refused, and only if the next one continues from it did time jump.
#[derive(Debug, Default)]
pub struct Order {
    last: Option<Stamp>,
    /// Stamp of a refused image that may have been the first after a jump.
    suspect: Option<Stamp>,
}

fn seconds(from: Stamp, to: Stamp) -> f64 {
    to.0.saturating_sub(from.0) as f64 * 1e-9
}

impl Order {
    /// Judges the next image. Unless it is refused, later ones are measured by it.
    pub fn judge(&mut self, stamp: Stamp, rules: &OrderRules) -> Verdict {
        let verdict = self.verdict(stamp, rules);
        self.suspect = match verdict {
            Verdict::Refused(Disorder::Jump) => Some(stamp),
            // A repeated image says nothing of the time.
            Verdict::Refused(Disorder::Repeated) => self.suspect,
            _ => None,
        };
        if !matches!(verdict, Verdict::Refused(_)) {
            self.last = Some(stamp);
        }
        verdict
    }

    fn verdict(&self, stamp: Stamp, rules: &OrderRules) -> Verdict {
        let Some(last) = self.last else {
            return Verdict::Continues;
        };
        let step = seconds(last, stamp);
        let gap_limit = if rules.new_map_gap > 0.0 {
            rules.new_map_gap
        } else {
            f64::INFINITY
        };
        let follows_suspect = self.suspect.is_some_and(|suspect| {
            let since = seconds(suspect, stamp);
            since > 0.0 && since <= IMPLAUSIBLE_GAP
        });
        let jumped = if step == 0.0 {
            return Verdict::Refused(Disorder::Repeated);
        } else if step < -rules.clock_jump {
            Some(NewMap::ClockWentBack)
        } else if step < 0.0 {
            return Verdict::Refused(Disorder::NotLater);
        } else if step > gap_limit {
            Some(NewMap::Gap)
        } else {
            None
        };
        let is_far = !(0.0..=IMPLAUSIBLE_GAP).contains(&step);
        if is_far && !follows_suspect {
            return Verdict::Refused(Disorder::Jump);
        }
        if let Some(reason) = jumped {
            return Verdict::NewMap(reason);
        }
        if step > rules.gap_warning {
            Verdict::AfterGap
        } else {
            Verdict::Continues
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: OrderRules = OrderRules {
        clock_jump: 1.0,
        new_map_gap: 0.0,
        gap_warning: 0.5,
    };
    fn judge_all(rules: &OrderRules, seconds: &[f64]) -> Vec<Verdict> {
        let mut order = Order::default();
        let stamp = |s: &f64| Stamp((s * 1e9) as i64);
        seconds
            .iter()
            .map(|s| order.judge(stamp(s), rules))
            .collect()
    }

    use Disorder::{Jump, NotLater, Repeated};
    use Verdict::{AfterGap, Continues, NewMap as Begins, Refused};

    #[test]
    fn a_bag_that_loops_begins_exactly_one_new_map() {
        let stamps: Vec<f64> = (0..100)
            .chain(0..100)
            .map(|i| 5.0 + 0.1 * f64::from(i))
            .collect();
        let verdicts = judge_all(&RULES, &stamps);
        let others: Vec<_> = (verdicts.iter().enumerate())
            .filter(|(_, verdict)| **verdict != Continues)
            .collect();
        let expected = [(100, &Refused(Jump)), (101, &Begins(NewMap::ClockWentBack))];
        assert_eq!(others, expected);
    }

    #[test]
    fn a_single_broken_stamp_changes_nothing() {
        for broken in [1e9, 0.0, 3.0] {
            let verdicts = judge_all(&RULES, &[20.0, 20.1, broken, 20.2, 20.3, broken, 20.4]);
            let expected = [
                Continues,
                Continues,
                Refused(Jump),
                Continues,
                Continues,
                Refused(Jump),
                Continues,
            ];
            assert_eq!(verdicts, expected, "{broken}");
        }
    }

    #[test]
    fn repeated_and_late_images_are_refused() {
        let verdicts = judge_all(&RULES, &[5.0, 5.0, 4.5, 5.1, 5.1, 5.2]);
        let expected = [
            Continues,
            Refused(Repeated),
            Refused(NotLater),
            Continues,
            Refused(Repeated),
            Continues,
        ];
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn gaps_are_counted_and_begin_a_new_map_only_when_asked_to() {
        let stamps = [5.0, 5.033, 5.166, 5.742, 9.0, 9.1, 300.0, 300.1];
        let verdicts = judge_all(&RULES, &stamps);
        let expected = [
            Continues,
            Continues,
            Continues,
            AfterGap,
            AfterGap,
            Continues,
            Refused(Jump),
            AfterGap,
        ];
        assert_eq!(verdicts, expected);
        let rules = OrderRules {
            new_map_gap: 3.0,
            ..RULES
        };
        let verdicts = judge_all(&rules, &stamps);
        assert_eq!(verdicts[3], AfterGap);
        assert_eq!(verdicts[4], Begins(NewMap::Gap));
        assert_eq!(verdicts[6..], [Refused(Jump), Begins(NewMap::Gap)]);
    }

    proptest! {
        /// Whatever the stamps are: within a map they rise.
        #[test]
        fn stamps_of_a_map_rise(stamps in prop::collection::vec(any::<i64>(), 0..40), gap in 0.0..20.0f64) {
            let rules = OrderRules { new_map_gap: gap, ..RULES };
            let mut order = Order::default();
            let mut last = None;
            for stamp in stamps {
                match order.judge(Stamp(stamp), &rules) {
                    Refused(_) => continue,
                    Continues | AfterGap => prop_assert!(last.is_none_or(|last| last < stamp)),
                    Begins(_) => {}
                }
                last = Some(stamp);
            }
        }
    }
}
