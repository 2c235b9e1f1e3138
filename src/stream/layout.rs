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

use super::thinning::Tail;

/// How a call treats its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRole {
    /// Stored, and stays in view as long as the window lets it.
    Keyframe,
    /// Sees the cache and itself, and is forgotten.
    Other,
}

/// Something done to rows within every cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMove {
    /// The two ranges may overlap.
    Copy { from: usize, to: usize, rows: usize },
    /// The two ranges do not overlap.
    Exchange { a: usize, b: usize, rows: usize },
}

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheRules {
    pub frame_tokens: usize,
    /// The first tokens of a frame, which survive its eviction.
    pub special_tokens: usize,
    /// First frames that are kept in full.
    pub scale_frames: usize,
    /// Later frames that are kept in full, at least 1.
    pub window: usize,
    /// Off: an evicted frame leaves nothing.
    pub keep_specials: bool,
    /// Off: the first frames leave whole, with their special tokens, when the window is full for the first time.
    pub keep_scale_frames: bool,
    /// Rows for special tokens of evicted frames at most; see [`CacheRules::kept_specials`].
    pub history: Option<usize>,
}

impl CacheRules {
    /// Rows that stay of an evicted frame, as long as there is room for them.
    pub fn kept_specials(&self) -> usize {
        let fits = self.history.is_none_or(|rows| rows >= self.special_tokens);
        if self.keep_specials && fits {
            self.special_tokens
        } else {
            0
        }
    }

    /// Frames that are kept in full.
    pub fn full_frames(&self) -> usize {
        self.scale_frames + self.window
    }

    /// Rows that a cache needs to hold the scale frames, a full window, `history` rows of special tokens and the spare
    /// frame.
    pub fn capacity_for(&self, history: usize) -> usize {
        (self.full_frames() + 1) * self.frame_tokens + history
    }
}

/// What one call does to the caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepPlan {
    /// To be done first, in this order.
    pub moves: Vec<RowMove>,
    /// Row of the call's first token.
    pub write: usize,
    /// Rows that the call attends, from 0; its own tokens included.
    pub attended: usize,
    /// Frames stored by the call.
    stored: usize,
    eviction: Option<Eviction>,
}

impl StepPlan {
    /// Whether the call keeps its frames.
    pub fn stores(&self) -> bool {
        self.stored > 0
    }
}

/// How the oldest frame of the window leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Eviction {
    frame: usize,
    /// Its first row.
    slot: usize,
    /// Rows of the tail that are given up for its special tokens, the last one first.
    removed: Vec<usize>,
    /// Whether the scale frames leave with it.
    drops_scale: bool,
}

/// The state of the layout. A plan changes nothing until it is committed, so a call that fails can be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLayout {
    rules: CacheRules,
    stored: usize,
    scale_dropped: bool,
    tail: Tail,
}

impl CacheLayout {
    pub fn new(rules: CacheRules) -> Self {
        debug_assert!(rules.window > 0 && rules.special_tokens <= rules.frame_tokens);
        Self {
            rules,
            stored: 0,
            scale_dropped: false,
            tail: Tail::new(rules.special_tokens, rules.history),
        }
    }

    pub fn rules(&self) -> &CacheRules {
        &self.rules
    }

    /// Frames stored since the start.
    pub fn stored(&self) -> usize {
        self.stored
    }

    /// Rows that special tokens of evicted frames take.
    pub fn history(&self) -> usize {
        self.tail.len()
    }

    /// The same after the next frame, if it is stored.
    pub fn next_history(&self) -> usize {
        match self.eviction() {
            Some(eviction) => self.tail.len() - eviction.removed.len() + self.rules.kept_specials(),
            None => self.tail.len(),
        }
    }

    /// Rows in use.
    pub fn valid(&self) -> usize {
        self.stored.min(self.slots()) * self.rules.frame_tokens + self.tail.len()
    }

    /// Frames of full slots.
    fn slots(&self) -> usize {
        self.first_slot() + self.rules.window
    }

    /// Slots before the ring.
    fn first_slot(&self) -> usize {
        if self.scale_dropped {
            0
        } else {
            self.rules.scale_frames
        }
    }

    /// What has to go when a further frame is stored.
    fn eviction(&self) -> Option<Eviction> {
        let CacheRules {
            scale_frames,
            window,
            ..
        } = self.rules;
        if self.stored < self.rules.full_frames() {
            return None;
        }
        let ring = (self.stored - scale_frames) % window;
        Some(Eviction {
            frame: self.stored - window,
            slot: (self.first_slot() + ring) * self.rules.frame_tokens,
            removed: self.tail.room_for(self.rules.kept_specials()),
            drops_scale: !self.rules.keep_scale_frames && !self.scale_dropped,
        })
    }

    /// The first call, with all scale frames at once.
    pub fn plan_scale(&self, frames: usize) -> StepPlan {
        debug_assert!(self.stored == 0 && frames <= self.rules.full_frames());
        StepPlan {
            moves: Vec::new(),
            write: 0,
            attended: frames * self.rules.frame_tokens,
            stored: frames,
            eviction: None,
        }
    }

    /// A call with one frame.
    pub fn plan_step(&self, role: FrameRole) -> StepPlan {
        let valid = self.valid();
        let eviction = match role {
            FrameRole::Keyframe => self.eviction(),
            FrameRole::Other => None,
        };
        let Some(eviction) = eviction else {
            return StepPlan {
                moves: Vec::new(),
                write: valid,
                attended: valid + self.rules.frame_tokens,
                stored: usize::from(role == FrameRole::Keyframe),
                eviction: None,
            };
        };
        let (mut moves, history) = self.removals(&eviction);
        moves.push(RowMove::Copy {
            from: eviction.slot,
            to: history,
            rows: self.rules.kept_specials(),
        });
        self.finish(eviction, moves, history)
    }

    /// Stores the frame of the last call, which ran as [`FrameRole::Other`] and lies in the spare rows. `write` is where
    /// the frame lies then, `attended` the rows in use.
    pub fn plan_promotion(&self) -> StepPlan {
        let valid = self.valid();
        let Some(eviction) = self.eviction() else {
            return StepPlan {
                moves: Vec::new(),
                write: valid,
                attended: valid + self.rules.frame_tokens,
                stored: 1,
                eviction: None,
            };
        };
        // The evicted special tokens belong where the new frame begins, so the two change places.
        let specials = self.rules.kept_specials();
        let mut moves = vec![
            RowMove::Exchange {
                a: eviction.slot,
                b: valid,
                rows: specials,
            },
            RowMove::Copy {
                from: valid + specials,
                to: eviction.slot + specials,
                rows: self.rules.frame_tokens - specials,
            },
        ];
        let (removals, history) = self.removals(&eviction);
        moves.extend(removals);
        moves.push(RowMove::Copy {
            from: valid,
            to: history,
            rows: specials,
        });
        self.finish(eviction, moves, history)
    }

    /// The moves that close the gaps of given-up rows, and the row after the tail's last one then.
    fn removals(&self, eviction: &Eviction) -> (Vec<RowMove>, usize) {
        let start = self.slots() * self.rules.frame_tokens;
        let mut end = start + self.tail.len();
        let mut moves = Vec::with_capacity(eviction.removed.len() + 3);
        for row in &eviction.removed {
            end -= 1;
            moves.push(RowMove::Copy {
                from: end,
                to: start + row,
                rows: 1,
            });
        }
        (moves, end)
    }

    /// `history` is the row at which the evicted special tokens lie.
    fn finish(&self, eviction: Eviction, mut moves: Vec<RowMove>, history: usize) -> StepPlan {
        let mut end = history + self.rules.kept_specials();
        let mut write = eviction.slot;
        if eviction.drops_scale {
            let scale = self.rules.scale_frames * self.rules.frame_tokens;
            moves.push(RowMove::Copy {
                from: scale,
                to: 0,
                rows: end - scale,
            });
            (end, write) = (end - scale, write - scale);
        }
        moves.retain(|change| match change {
            RowMove::Copy { from, to, rows } => *rows > 0 && from != to,
            RowMove::Exchange { rows, .. } => *rows > 0,
        });
        StepPlan {
            moves,
            write,
            attended: end,
            stored: 1,
            eviction: Some(eviction),
        }
    }

    /// Takes a plan of this layout as done.
    pub fn commit(&mut self, plan: &StepPlan) {
        self.stored += plan.stored;
        if let Some(eviction) = &plan.eviction {
            self.tail.remove(&eviction.removed);
            self.tail.push(eviction.frame, self.rules.kept_specials());
            self.scale_dropped |= eviction.drops_scale;
        }
    }

    /// Forgets all frames.
    pub fn clear(&mut self) {
        *self = Self::new(self.rules);
    }
}

#[cfg(test)]
mod tests;
