//! Windows of a stream of unknown length.

use std::collections::VecDeque;

use image::RgbImage;
use nalgebra::Similarity3;

use super::alignment::{Pair, align};
use super::{OnCollapse, WindowAlignment};
use crate::camera::NetworkSize;
use crate::stream::watch::CollapseWatch;
use crate::stream::{FrameType, GctStream, Prediction, StreamError};

/// A window ends when it has stored its frames; the next one starts with the last stored of them. Every frame is predicted
/// once and at once, so nothing that was published changes.
pub(super) struct Live {
    window_size: usize,
    /// Frames that two windows share: those of one scale call.
    overlap: usize,
    alignment: WindowAlignment,
    on_collapse: OnCollapse,
    collapses: u64,
    state: State,
}

struct State {
    window: usize,
    world_from_window: Similarity3<f64>,
    /// Frames that this window has stored.
    stored: usize,
    /// Frames without a prediction yet.
    waiting: VecDeque<RgbImage>,
    /// The last stored frames, with their predictions in the world.
    kept: VecDeque<(RgbImage, Prediction)>,
    /// Frames predicted so far.
    predicted: u64,
    watch: CollapseWatch,
}

impl State {
    fn new() -> Self {
        Self {
            window: 0,
            world_from_window: Similarity3::identity(),
            stored: 0,
            waiting: VecDeque::new(),
            kept: VecDeque::new(),
            predicted: 0,
            watch: CollapseWatch::default(),
        }
    }
}

impl Live {
    pub fn new(
        window_size: usize,
        overlap: usize,
        alignment: WindowAlignment,
        on_collapse: OnCollapse,
    ) -> Self {
        Self {
            window_size,
            overlap,
            alignment,
            on_collapse,
            collapses: 0,
            state: State::new(),
        }
    }

    pub fn window(&self) -> usize {
        self.state.window
    }

    /// Collapses noticed so far.
    pub fn collapses(&self) -> u64 {
        self.collapses
    }

    pub fn reset(&mut self) {
        self.state = State::new();
    }

    pub fn push(
        &mut self,
        stream: &mut GctStream,
        frame: &RgbImage,
    ) -> Result<Vec<Prediction>, StreamError> {
        if self.state.stored >= self.window_size && self.state.kept.len() == self.overlap {
            self.change_window(stream)?;
        }
        let predictions = stream.push(frame)?;
        self.state.waiting.push_back(frame.clone());
        let settled = self.accept(predictions, stream.manifest().size);
        if self.state.watch.has_collapsed() {
            self.recover(stream)?;
        }
        Ok(settled)
    }

    /// Starts anew after a collapse: from the last healthy stored frames, or from nothing.
    fn recover(&mut self, stream: &mut GctStream) -> Result<(), StreamError> {
        self.collapses += 1;
        if self.on_collapse == OnCollapse::NewMap || self.state.kept.len() < self.overlap {
            log::warn!("the network has lost its way: a new map starts");
            stream.reset();
            self.state = State::new();
            return Ok(());
        }
        log::warn!("the network has lost its way: a new window starts from what it last knew well");
        self.change_window(stream)?;
        self.state.watch.restart();
        Ok(())
    }

    pub fn finish(&mut self, stream: &mut GctStream) -> Result<Vec<Prediction>, StreamError> {
        let predictions = stream.finish()?;
        Ok(self.accept(predictions, stream.manifest().size))
    }

    /// One scale call with the kept frames.
    fn change_window(&mut self, stream: &mut GctStream) -> Result<(), StreamError> {
        stream.reset();
        let mut seen = Vec::with_capacity(self.overlap);
        for (image, _) in &self.state.kept {
            seen.extend(stream.push(image)?);
        }
        let state = &mut self.state;
        state.window += 1;
        state.stored = seen.len();
        let pairs: Vec<Pair> = state.kept.iter().map(|(_, old)| old).zip(&seen).collect();
        match align(self.alignment, &pairs, stream.manifest().size) {
            Some(transform) => state.world_from_window = transform,
            None => log::warn!(
                "window {} has no pose in common with the one before",
                state.window
            ),
        }
        Ok(())
    }

    fn accept(&mut self, predictions: Vec<Prediction>, size: NetworkSize) -> Vec<Prediction> {
        let state = &mut self.state;
        let mut settled = Vec::with_capacity(predictions.len());
        for mut prediction in predictions {
            prediction.index = state.predicted;
            prediction.window = state.window;
            if state.window > 0 {
                prediction.warp(state.world_from_window);
            }
            state.predicted += 1;
            let image = state.waiting.pop_front();
            if self.on_collapse != OnCollapse::GoOn {
                prediction.symptom = state.watch.judge(&prediction, size);
            }
            let stored = prediction.frame_type != FrameType::Other;
            state.stored += usize::from(stored);
            if let (true, None, Some(image)) = (stored, prediction.symptom, image) {
                if state.kept.len() == self.overlap {
                    state.kept.pop_front();
                }
                state.kept.push_back((image, prediction.clone()));
            }
            settled.push(prediction);
        }
        settled
    }
}
