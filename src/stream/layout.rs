//! Where frames lie in the token caches: pure index arithmetic.
//!
//! A cache holds, in rows of one token each,
//!
//! ```text
//! scale frames | ring of window frames | special tokens of evicted frames | one spare frame
//! ```
//!
//! The first frames stay for ever. Of later ones the last `window` stay in full; of those before them only the special
//! tokens stay. What may be attended is always a prefix: softmax over a set does not see the order of its members, so
//! this gives exactly what appending and evicting would.

/// How a call treats its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRole {
    /// Stored, and stays in view as long as the window lets it.
    Keyframe,
    /// Sees the cache and itself, and is forgotten.
    Other,
}

/// Rows to copy within every cache before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCopy {
    pub from: usize,
    pub to: usize,
    pub rows: usize,
}

/// What one call does to the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepPlan {
    /// The special tokens of a frame that leaves the window, to be saved first.
    pub evict: Option<RowCopy>,
    /// Row of the call's first token.
    pub write: usize,
    /// Rows that the call attends, from 0; its own tokens included.
    pub attended: usize,
    /// Frames stored by the call.
    stored: usize,
}

impl StepPlan {
    /// Whether the call keeps its frames.
    pub fn stores(&self) -> bool {
        self.stored > 0
    }
}

/// The state of the layout. A plan changes nothing until it is committed, so a call that fails can be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLayout {
    frame_tokens: usize,
    special_tokens: usize,
    scale_frames: usize,
    window: usize,
    stored: usize,
    evicted: usize,
}

impl CacheLayout {
    /// `frame_tokens` tokens a frame, of which the first `special_tokens` survive eviction; `window` at least 1.
    pub fn new(
        frame_tokens: usize,
        special_tokens: usize,
        scale_frames: usize,
        window: usize,
    ) -> Self {
        debug_assert!(window > 0 && special_tokens <= frame_tokens);
        Self {
            frame_tokens,
            special_tokens,
            scale_frames,
            window,
            stored: 0,
            evicted: 0,
        }
    }

    /// Frames stored since the start.
    pub fn stored(&self) -> usize {
        self.stored
    }

    /// Frames of which only special tokens are left.
    pub fn evicted(&self) -> usize {
        self.evicted
    }

    /// Rows in use.
    pub fn valid(&self) -> usize {
        self.stored.min(self.full_frames()) * self.frame_tokens + self.special_tokens * self.evicted
    }

    /// Rows that a cache needs to hold the scale frames, a full window, the special tokens of `evicted` frames and the
    /// spare frame.
    pub fn capacity_for(&self, evicted: usize) -> usize {
        (self.full_frames() + 1) * self.frame_tokens + evicted * self.special_tokens
    }

    fn full_frames(&self) -> usize {
        self.scale_frames + self.window
    }

    /// The first call, with all scale frames at once.
    pub fn plan_scale(&self, frames: usize) -> StepPlan {
        debug_assert!(self.stored == 0 && frames <= self.full_frames());
        StepPlan {
            evict: None,
            write: 0,
            attended: frames * self.frame_tokens,
            stored: frames,
        }
    }

    /// A call with one frame.
    pub fn plan_step(&self, role: FrameRole) -> StepPlan {
        let valid = self.valid();
        let append = StepPlan {
            evict: None,
            write: valid,
            attended: valid + self.frame_tokens,
            stored: 0,
        };
        match role {
            FrameRole::Other => append,
            FrameRole::Keyframe if self.stored < self.full_frames() => StepPlan {
                stored: 1,
                ..append
            },
            FrameRole::Keyframe => {
                let slot = self.scale_frames + (self.stored - self.scale_frames) % self.window;
                let oldest = slot * self.frame_tokens;
                StepPlan {
                    evict: Some(RowCopy {
                        from: oldest,
                        to: valid,
                        rows: self.special_tokens,
                    }),
                    write: oldest,
                    attended: valid + self.special_tokens,
                    stored: 1,
                }
            }
        }
    }

    /// Takes a plan of this layout as done.
    pub fn commit(&mut self, plan: &StepPlan) {
        self.stored += plan.stored;
        self.evicted += usize::from(plan.evict.is_some());
    }

    /// Forgets all frames.
    pub fn clear(&mut self) {
        self.stored = 0;
        self.evicted = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// (frame, token)
    type Token = (usize, usize);

    /// The rule itself: frames in order of storage, each with the tokens that are left of it.
    struct ListModel {
        frame_tokens: usize,
        special_tokens: usize,
        scale_frames: usize,
        window: usize,
        frames: Vec<Vec<Token>>,
    }

    impl ListModel {
        fn frame(&self, id: usize) -> Vec<Token> {
            (0..self.frame_tokens).map(|token| (id, token)).collect()
        }

        fn store(&mut self, id: usize) {
            self.frames.push(self.frame(id));
            let count = self.frames.len();
            if count > self.scale_frames + self.window {
                self.frames[count - 1 - self.window].truncate(self.special_tokens);
            }
        }

        fn kept(&self) -> BTreeSet<Token> {
            self.frames.iter().flatten().copied().collect()
        }
    }

    /// A cache of row names, driven by plans alone.
    fn apply(rows: &mut Vec<Option<Token>>, plan: &StepPlan, tokens: &[Token]) -> BTreeSet<Token> {
        let end = plan
            .evict
            .map_or(0, |copy| copy.to + copy.rows)
            .max(plan.write + tokens.len());
        if rows.len() < end {
            rows.resize(end, None);
        }
        if let Some(RowCopy { from, to, rows: n }) = plan.evict {
            rows.copy_within(from..from + n, to);
        }
        for (row, token) in rows[plan.write..].iter_mut().zip(tokens) {
            *row = Some(*token);
        }
        let attended: Vec<Token> = rows[..plan.attended]
            .iter()
            .map(|row| row.expect("an attended row was never written"))
            .collect();
        let set: BTreeSet<Token> = attended.iter().copied().collect();
        assert_eq!(set.len(), attended.len(), "a token is attended twice");
        set
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn attends_exactly_what_append_and_evict_would(
            patches in 1usize..5, special_tokens in 1usize..4, scale_frames in 1usize..6, window in 1usize..7,
            first in 1usize..9,
            roles in prop::collection::vec(prop::bool::weighted(0.7), 0..2000),
        ) {
            let frame_tokens = patches + special_tokens;
            let mut model = ListModel { frame_tokens, special_tokens, scale_frames, window, frames: Vec::new() };
            let mut layout = CacheLayout::new(frame_tokens, special_tokens, scale_frames, window);
            let mut rows = Vec::new();

            let first = first.min(scale_frames + window);
            let plan = layout.plan_scale(first);
            let tokens: Vec<Token> = (0..first).flat_map(|id| model.frame(id)).collect();
            (0..first).for_each(|id| model.store(id));
            prop_assert_eq!(apply(&mut rows, &plan, &tokens), model.kept());
            layout.commit(&plan);

            for (step, keyframe) in roles.into_iter().enumerate() {
                let id = first + step;
                let role = if keyframe { FrameRole::Keyframe } else { FrameRole::Other };
                let plan = layout.plan_step(role);
                let mut expected = model.kept();
                if keyframe {
                    model.store(id);
                    expected = model.kept();
                }
                expected.extend(model.frame(id));
                prop_assert_eq!(apply(&mut rows, &plan, &model.frame(id)), expected);
                prop_assert!(plan.attended <= layout.capacity_for(layout.evicted() + 1));
                layout.commit(&plan);
                prop_assert_eq!(layout.valid(), model.kept().len());
            }
            prop_assert!(rows.len() <= layout.capacity_for(layout.evicted()));
        }
    }
}
