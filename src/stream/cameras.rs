//! Where frames lie in the camera head's caches: one row each, appended in the order of storage.

use super::layout::RowMove;
use super::thinning::most_redundant;

/// What one call does to the caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CameraPlan {
    /// To be done first.
    pub moves: Vec<RowMove>,
    /// Row of the call's first frame.
    pub write: usize,
    /// Rows that the call attends, from 0; its own included.
    pub attended: usize,
    /// Row that is given up.
    removed: Option<usize>,
}

/// The state of the layout; a plan changes nothing until it is committed.
///
/// With a limit, frames between the scale frames and the window are thinned out evenly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CameraLayout {
    scale_frames: usize,
    window: usize,
    limit: Option<usize>,
    /// The frame in each row, counted in the order of storage.
    rows: Vec<usize>,
    stored: usize,
}

impl CameraLayout {
    /// `limit` rows at most stay, more than the scale frames and the window together.
    pub fn new(scale_frames: usize, window: usize, limit: Option<usize>) -> Self {
        Self {
            scale_frames,
            window,
            limit,
            rows: Vec::new(),
            stored: 0,
        }
    }

    /// Rows in use.
    pub fn valid(&self) -> usize {
        self.rows.len()
    }

    /// A call with as many frames, which are stored or not.
    pub fn plan(&self, frames: usize, stores: bool) -> CameraPlan {
        let removed = if stores { self.excess(frames) } else { None };
        let write = self.rows.len() - usize::from(removed.is_some());
        CameraPlan {
            moves: Self::removal(removed, write),
            write,
            attended: write + frames,
            removed,
        }
    }

    /// Stores the frame of the last call, which was not stored and lies after the last row.
    pub fn plan_promotion(&self) -> CameraPlan {
        let removed = self.excess(1);
        let end = self.rows.len();
        let write = removed.unwrap_or(end);
        CameraPlan {
            moves: Self::removal(removed, end),
            write,
            attended: end + usize::from(removed.is_none()),
            removed,
        }
    }

    fn removal(removed: Option<usize>, last: usize) -> Vec<RowMove> {
        let copy = removed.filter(|&row| row != last).map(|row| RowMove::Copy {
            from: last,
            to: row,
            rows: 1,
        });
        copy.into_iter().collect()
    }

    /// The row to give up when there is no room for as many frames more.
    fn excess(&self, frames: usize) -> Option<usize> {
        if self.rows.len() + frames <= self.limit? {
            return None;
        }
        let newest = (self.stored + frames).saturating_sub(self.window);
        let mut past: Vec<(usize, usize)> = self
            .rows
            .iter()
            .enumerate()
            .filter(|(_, frame)| (self.scale_frames..newest).contains(*frame))
            .map(|(row, frame)| (*frame, row))
            .collect();
        past.sort_unstable();
        let frames: Vec<usize> = past.iter().map(|(frame, _)| *frame).collect();
        let place = most_redundant(&frames).unwrap_or(0);
        past.get(place).map(|(_, row)| *row)
    }

    /// Takes a plan of a call with as many stored frames, or of a promotion of one, as done.
    pub fn commit(&mut self, plan: &CameraPlan, frames: usize) {
        if let Some(row) = plan.removed {
            self.rows.swap_remove(row);
        }
        self.rows.extend(self.stored..self.stored + frames);
        // A promoted frame lies where the removed one was, and the row that took its place last.
        if plan.write + frames < self.rows.len() {
            let last = self.rows.len() - 1;
            self.rows.swap(plan.write, last);
        }
        self.stored += frames;
    }

    /// Forgets all frames.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.stored = 0;
    }
}
