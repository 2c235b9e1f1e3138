//! Windows of a stream of known length.

use std::collections::VecDeque;

use image::RgbImage;
use nalgebra::Similarity3;

use super::alignment::{Pair, align};
use super::{WindowAlignment, WindowPlan};
use crate::camera::NetworkSize;
use crate::stream::{GctStream, Prediction, StreamError};

/// Each frame's prediction comes from the last window that sees it, so those of an overlap wait for the next window.
pub(super) struct Planned {
    plan: WindowPlan,
    alignment: WindowAlignment,
    state: State,
}

#[derive(Default)]
struct State {
    window: usize,
    /// Frames taken.
    pushed: usize,
    /// The last frames, which the next window starts with.
    recent: VecDeque<RgbImage>,
    /// What the window before said about the overlap, in the world.
    before: Vec<Prediction>,
    /// Predictions of this window as long as its place in the world is not known.
    fresh: Vec<Prediction>,
    /// Predictions that the next window replaces, in the world.
    overlap: Vec<Prediction>,
    world_from_window: Option<Similarity3<f64>>,
}

impl Planned {
    pub fn new(plan: WindowPlan, alignment: WindowAlignment) -> Self {
        Self {
            plan,
            alignment,
            state: State::default(),
        }
    }

    pub fn window(&self) -> usize {
        self.state.window
    }

    pub fn reset(&mut self) {
        self.state = State::default();
    }

    pub fn push(
        &mut self,
        stream: &mut GctStream,
        frame: &RgbImage,
    ) -> Result<Vec<Prediction>, StreamError> {
        let size = stream.manifest().size;
        let predictions = stream.push(frame)?;
        let state = &mut self.state;
        state.pushed += 1;
        if self.plan.windows.len() > 1 {
            if state.recent.len() == self.plan.overlap {
                state.recent.pop_front();
            }
            state.recent.push_back(frame.clone());
        }
        let mut settled = self.accept(predictions, size);
        // A stream longer than planned goes on in the last window.
        while self.next_start().is_some() && self.state.pushed == self.end() {
            self.state.window += 1;
            self.state.before = std::mem::take(&mut self.state.overlap);
            self.state.world_from_window = None;
            stream.reset();
            for index in 0..self.state.recent.len() {
                let predictions = stream.push(&self.state.recent[index])?;
                settled.extend(self.accept(predictions, size));
            }
        }
        Ok(settled)
    }

    pub fn finish(&mut self, stream: &mut GctStream) -> Result<Vec<Prediction>, StreamError> {
        let size = stream.manifest().size;
        let predictions = stream.finish()?;
        let mut settled = self.accept(predictions, size);
        if !self.state.fresh.is_empty() {
            settled.extend(self.place(size));
        }
        settled.append(&mut self.state.overlap);
        Ok(settled)
    }

    fn end(&self) -> usize {
        self.plan
            .windows
            .get(self.state.window)
            .map_or(usize::MAX, |window| window.end)
    }

    fn next_start(&self) -> Option<usize> {
        let next = self.plan.windows.get(self.state.window + 1)?;
        Some(next.start)
    }

    /// Returns what the network's predictions settle.
    fn accept(&mut self, predictions: Vec<Prediction>, size: NetworkSize) -> Vec<Prediction> {
        let window = self.state.window;
        let start = self
            .plan
            .windows
            .get(window)
            .map_or(0, |window| window.start);
        for mut prediction in predictions {
            prediction.index += start as u64;
            prediction.window = window;
            self.state.fresh.push(prediction);
        }
        let known = self.state.world_from_window.is_some() || window == 0;
        if known || self.state.fresh.len() >= self.plan.overlap {
            self.place(size)
        } else {
            Vec::new()
        }
    }

    /// Takes the fresh predictions to the world, and finds out where this is, if that is not known.
    fn place(&mut self, size: NetworkSize) -> Vec<Prediction> {
        let next_start = self.next_start();
        let State {
            window,
            before,
            fresh,
            overlap,
            world_from_window,
            ..
        } = &mut self.state;
        if *window > 0 {
            let transform = *world_from_window.get_or_insert_with(|| {
                let pairs: Vec<Pair> = before.iter().zip(fresh.iter()).collect();
                align(self.alignment, &pairs, size).unwrap_or_else(|| {
                    log::warn!("window {window} has no pose in common with the one before");
                    before
                        .last()
                        .map_or_else(Similarity3::identity, |last| last.world_from_window)
                })
            });
            fresh
                .iter_mut()
                .for_each(|prediction| prediction.warp(transform));
        }
        let replaced = |prediction: &Prediction| {
            next_start.is_some_and(|start| prediction.index >= start as u64)
        };
        let (late, settled): (Vec<_>, Vec<_>) = fresh.drain(..).partition(replaced);
        overlap.extend(late);
        settled
    }
}
