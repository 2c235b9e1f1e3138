/// Which streamed frames are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyframeRule {
    interval: usize,
    streamed: usize,
}

impl KeyframeRule {
    /// Every `interval`-th frame, the first one included.
    pub fn every(interval: usize) -> Self {
        Self {
            interval: interval.max(1),
            streamed: 0,
        }
    }

    /// Whether the next frame is a keyframe.
    pub fn next_is_keyframe(&self) -> bool {
        self.streamed.is_multiple_of(self.interval)
    }

    /// Moves on by one frame.
    pub fn advance(&mut self) {
        self.streamed += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_frame_and_every_third_after_it_are_keyframes() {
        let mut rule = KeyframeRule::every(3);
        let taken: Vec<bool> = (0..7)
            .map(|_| {
                let keyframe = rule.next_is_keyframe();
                rule.advance();
                keyframe
            })
            .collect();
        assert_eq!(taken, [true, false, false, true, false, false, true]);
    }
}
