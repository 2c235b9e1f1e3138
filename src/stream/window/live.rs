//! Windows of a stream of unknown length.

use std::collections::VecDeque;

use image::RgbImage;
use nalgebra::Similarity3;

use super::WindowAlignment;
use super::alignment::{Pair, align};
use crate::stream::{FrameType, GctStream, Prediction, StreamError};

/// A window ends when it has stored its frames; the next one starts with the last stored of them. Every frame is predicted
/// once and at once, so nothing that was published changes.
pub(super) struct Live {
    window_size: usize,
    /// Frames that two windows share: those of one scale call.
    overlap: usize,
    alignment: WindowAlignment,
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
        }
    }
}

impl Live {
    pub fn new(window_size: usize, overlap: usize, alignment: WindowAlignment) -> Self {
        Self {
            window_size,
            overlap,
            alignment,
            state: State::new(),
        }
    }

    pub fn window(&self) -> usize {
        self.state.window
    }

    pub fn reset(&mut self) {
        self.state = State::new();
    }

    pub fn push(
        &mut self,
        stream: &mut GctStream,
        frame: &RgbImage,
    ) -> Result<Vec<Prediction>, StreamError> {
        if self.state.stored >= self.window_size {
            self.change_window(stream)?;
        }
        let predictions = stream.push(frame)?;
        self.state.waiting.push_back(frame.clone());
        Ok(self.accept(predictions))
    }

    pub fn finish(&mut self, stream: &mut GctStream) -> Result<Vec<Prediction>, StreamError> {
        let predictions = stream.finish()?;
        Ok(self.accept(predictions))
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

    fn accept(&mut self, predictions: Vec<Prediction>) -> Vec<Prediction> {
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
            if let (true, Some(image)) = (prediction.frame_type != FrameType::Other, image) {
                state.stored += 1;
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
