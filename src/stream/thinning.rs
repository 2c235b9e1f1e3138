//! What of the past to give up when there is room for a part of it only.

use std::collections::BTreeMap;

/// The place in `frames`, which ascend, of the one whose neighbours are closest to each other: without it the others are
/// still spread evenly. The first and the last stay; of equals the oldest goes. `None` with fewer than three.
pub(super) fn most_redundant(frames: &[usize]) -> Option<usize> {
    let gaps = frames.windows(3).map(|around| around[2] - around[0]);
    let (index, _) = gaps.enumerate().min_by_key(|&(_, gap)| gap)?;
    Some(index + 1)
}

/// Which special token of which evicted frame lies in each row of the tail.
///
/// With a limit, room is made in this order: the camera and scale token of the oldest frame that still has them; then the
/// registers of the frame that is missed least ([`most_redundant`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    rows: Vec<Special>,
    special_tokens: usize,
    limit: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Special {
    frame: usize,
    token: usize,
}

impl Tail {
    pub fn new(special_tokens: usize, limit: Option<usize>) -> Self {
        Self {
            rows: Vec::new(),
            special_tokens,
            limit,
        }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Rows to give up so that `rows` more fit, in the order in which [`Tail::remove`] takes them: the last one first.
    pub fn room_for(&self, rows: usize) -> Vec<usize> {
        let Some(limit) = self.limit else {
            return Vec::new();
        };
        let mut excess = (self.rows.len() + rows).saturating_sub(limit);
        if excess == 0 {
            return Vec::new();
        }
        let mut frames: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (row, special) in self.rows.iter().enumerate() {
            frames.entry(special.frame).or_default().push(row);
        }
        let mut removed = Vec::new();
        while excess > 0 && !frames.is_empty() {
            let gone = self.least_needed(&mut frames);
            excess = excess.saturating_sub(gone.len());
            removed.extend(gone);
        }
        removed.sort_unstable_by(|a, b| b.cmp(a));
        removed
    }

    /// Takes rows out of `frames`.
    fn least_needed(&self, frames: &mut BTreeMap<usize, Vec<usize>>) -> Vec<usize> {
        let register = |row: &usize| {
            let token = self.rows[*row].token;
            token > 0 && token + 1 < self.special_tokens
        };
        for rows in frames.values_mut() {
            let (kept, gone): (Vec<usize>, Vec<usize>) = rows.iter().partition(|row| register(row));
            if !gone.is_empty() && !kept.is_empty() {
                *rows = kept;
                return gone;
            }
        }
        let ascending: Vec<usize> = frames.keys().copied().collect();
        let frame = ascending[most_redundant(&ascending).unwrap_or(0)];
        frames.remove(&frame).unwrap_or_default()
    }

    /// Gives up rows; the last row takes the place of each.
    pub fn remove(&mut self, rows: &[usize]) {
        for &row in rows {
            self.rows.swap_remove(row);
        }
    }

    /// Adds the first `tokens` special tokens of a frame at the end.
    pub fn push(&mut self, frame: usize, tokens: usize) {
        self.rows
            .extend((0..tokens).map(|token| Special { frame, token }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_growing_list_stays_evenly_spread() {
        let mut kept: Vec<usize> = Vec::new();
        for frame in 0..10_000 {
            kept.push(frame);
            if kept.len() > 50 {
                kept.remove(most_redundant(&kept).unwrap());
            }
        }
        assert_eq!((kept[0], *kept.last().unwrap()), (0, 9999));
        let gaps: Vec<usize> = kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let largest = *gaps.iter().max().unwrap();
        assert!(largest <= 2 * 256, "evenly would be 204, found {largest}");
        assert!(
            gaps.iter().filter(|&&gap| gap < 64).count() < 10,
            "{gaps:?}"
        );
    }

    #[test]
    fn two_are_never_thinned() {
        assert_eq!(most_redundant(&[3, 9]), None);
        assert_eq!(most_redundant(&[0, 5, 6, 8]), Some(2));
    }

    /// (tokens of each frame, by frame)
    fn contents(tail: &Tail) -> BTreeMap<usize, Vec<usize>> {
        let mut frames: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for special in &tail.rows {
            frames.entry(special.frame).or_default().push(special.token);
        }
        frames
            .values_mut()
            .for_each(|tokens| tokens.sort_unstable());
        frames
    }

    #[test]
    fn registers_outlive_camera_and_scale_tokens() {
        let mut tail = Tail::new(6, Some(48));
        for frame in 0..200 {
            tail.remove(&tail.room_for(6));
            tail.push(frame, 6);
            assert!(tail.len() <= 48);
            let frames = contents(&tail);
            let bare = frames
                .values()
                .filter(|tokens| **tokens == [1, 2, 3, 4])
                .count();
            let whole = frames.values().filter(|tokens| tokens.len() == 6).count();
            assert_eq!(bare + whole, frames.len(), "{frames:?}");
            // A frame is given up as a whole only when no other token is left to give up.
            if frames.len() < frame + 1 {
                assert_eq!((frames.len(), whole), (11, 1), "{frames:?}");
            }
        }
        assert_eq!(contents(&tail).keys().next(), Some(&0));
    }

    #[test]
    fn without_a_limit_nothing_is_given_up() {
        let mut tail = Tail::new(6, None);
        for frame in 0..100 {
            assert!(tail.room_for(6).is_empty());
            tail.push(frame, 6);
        }
        assert_eq!(tail.len(), 600);
    }
}
