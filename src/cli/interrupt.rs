//! Ending early, with what is done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, ensure};
use tokio::signal::unix::{SignalKind, signal};

/// What the shell reports for a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Set by the first Ctrl-C or SIGTERM. The second ends the process at once.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub fn listen() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .context("cannot listen for signals")?;
        let (mut interrupted, mut terminated) = runtime
            .block_on(async {
                Ok::<_, std::io::Error>((
                    signal(SignalKind::interrupt())?,
                    signal(SignalKind::terminate())?,
                ))
            })
            .context("cannot listen for signals")?;
        let flag = interrupt.clone();
        std::thread::spawn(move || {
            runtime.block_on(async move {
                loop {
                    tokio::select! {
                        _ = interrupted.recv() => {}
                        _ = terminated.recv() => {}
                    }
                    if flag.0.swap(true, Ordering::Relaxed) {
                        // No destructors: the network may be running on other threads.
                        signal_hook::low_level::exit(INTERRUPTED);
                    }
                    log::warn!("stopping after this frame; once more to stop at once");
                }
            });
        });
        Ok(interrupt)
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// The signal came: the work is not complete.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(
            !self.is_set(),
            "interrupted: what was done until then is kept"
        );
        Ok(())
    }
}
