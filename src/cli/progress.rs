//! Progress bars, which show on a terminal only.

use std::borrow::Cow;

use indicatif::{ProgressBar, ProgressStyle};

use crate::network::export::ExportProgress;

const BYTES: &str = "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec}, {eta} left";
const FRAMES: &str = "{msg} [{bar:30}] {pos}/{len} frames, {eta} left";

pub fn bar(
    message: impl Into<Cow<'static, str>>,
    template: &'static str,
    length: u64,
) -> ProgressBar {
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length)
        .with_style(style.progress_chars("=> "))
        .with_message(message)
}

pub fn frames(message: &'static str, count: usize) -> ProgressBar {
    bar(message, FRAMES, count as u64)
}

/// A bar for an export, which appears when the export begins.
#[derive(Default)]
pub struct ExportBar(Option<ProgressBar>);

impl ExportBar {
    pub fn update(&mut self, progress: ExportProgress) {
        let bar = self
            .0
            .get_or_insert_with(|| bar("exporting", BYTES, progress.total_bytes));
        bar.set_position(progress.done_bytes);
    }

    pub fn finish(self) {
        if let Some(bar) = self.0 {
            bar.finish_and_clear();
        }
    }
}
