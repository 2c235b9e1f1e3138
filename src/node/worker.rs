//! The thread that owns the mapper: takes the newest frame or a command, does it, publishes.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use anyhow::{Context as _, bail};
use tokio::sync::oneshot;

use super::{
    health::Health,
    input::{Arrival, Refusal, decode},
    mailbox::{Mailbox, Work},
    outputs::Outputs,
    parameters::Parameters,
    setup,
};
use crate::{camera::Stamp, mapper::Mapper};

/// What services and timers ask of the worker. Replies go back through the channel in the command.
pub enum Command {
    Reset(oneshot::Sender<()>),
    /// The reply is the folder with the saved files.
    Save(oneshot::Sender<Result<PathBuf, String>>),
    PublishMap,
}

pub type Inbox = Mailbox<Arrival, Command>;

struct Worker {
    parameters: Arc<Parameters>,
    health: Arc<Health>,
    outputs: Outputs,
    mapper: Mapper,
    /// Stamp of the newest frame given to the mapper.
    last_given: Option<Stamp>,
    /// Stamp of the newest frame that came out of it.
    last_mapped: Option<Stamp>,
}

/// Loads the model, then works until the inbox is closed.
pub fn run(
    parameters: Arc<Parameters>,
    health: Arc<Health>,
    outputs: Outputs,
    inbox: Arc<Inbox>,
) -> anyhow::Result<()> {
    let mapper = setup::open_mapper(&parameters)?;
    let status = mapper.status();
    log::info!("ready on provider {}", status.provider);
    health.lock().mapper = Some(status);
    let save_on_exit = parameters.save_on_exit;
    let mut worker = Worker {
        parameters,
        health,
        outputs,
        mapper,
        last_given: None,
        last_mapped: None,
    };
    loop {
        match inbox.take() {
            Work::Frame(arrival) => {
                if let Err(refusal) = worker.map(arrival) {
                    worker.health.refuse(&refusal);
                }
            }
            Work::Command(command) => worker.carry_out(command),
            Work::Closed => break,
        }
        worker.note_state();
    }
    if save_on_exit && !worker.mapper.trajectory().is_empty() {
        worker.save().context("the map was not saved on exit")?;
    }
    Ok(())
}

impl Worker {
    fn map(&mut self, arrival: Arrival) -> Result<(), Refusal> {
        let (frame, camera_frame) = decode(arrival, &self.parameters)?;
        self.health.lock().camera_frame = camera_frame;
        self.check_order(frame.stamp)?;
        self.last_given = Some(frame.stamp);

        let started = Instant::now();
        let updates = self.mapper.push(frame);
        let spent = started.elapsed();
        {
            let mut state = self.health.lock();
            state.mapping_time += spent;
            state.frames_mapped += updates.as_ref().map_or(0, |updates| updates.len() as u64);
        }
        for update in updates? {
            self.outputs.publish_update(&update);
            self.last_mapped = Some(update.stamp);
        }
        Ok(())
    }

    /// Stamps must rise. One far back is a clock that began anew (a bag that loops), and so is the map then.
    fn check_order(&mut self, stamp: Stamp) -> Result<(), Refusal> {
        match self.last_given {
            Some(last)
                if (last.0.saturating_sub(stamp.0)) as f64 * 1e-9
                    > self.parameters.clock_jump_seconds =>
            {
                log::warn!("the camera's clock went back: a new map begins");
                self.health.lock().clock_jumps += 1;
                self.reset();
                Ok(())
            }
            Some(last) if stamp <= last => Err(Refusal::NotLater),
            _ => Ok(()),
        }
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Reset(done) => {
                self.reset();
                log::info!("reset: a new map begins");
                // Whoever asked may have gone; the reset stands.
                let _ = done.send(());
            }
            Command::Save(done) => {
                let _ = done.send(self.save().map_err(|error| format!("{error:#}")));
            }
            Command::PublishMap => {
                if let Some(stamp) = self.last_mapped {
                    self.outputs.publish_map(&self.mapper, stamp);
                }
            }
        }
    }

    fn reset(&mut self) {
        self.mapper.reset();
        self.outputs.map_was_reset();
        self.last_given = None;
    }

    fn save(&self) -> anyhow::Result<PathBuf> {
        if self.mapper.trajectory().is_empty() {
            bail!("there is no map yet");
        }
        let folder = new_folder(Path::new(&self.parameters.output_dir))?;
        self.mapper.save(&folder)?;
        log::info!("map saved to {}", folder.display());
        Ok(folder)
    }

    fn note_state(&self) {
        self.health.lock().mapper = Some(self.mapper.status());
    }
}

/// Makes a folder named by the time of day (UTC) inside `parent`, which no map was saved to before.
fn new_folder(parent: &Path) -> anyhow::Result<PathBuf> {
    let parent = std::path::absolute(parent).context("output_dir")?;
    std::fs::create_dir_all(&parent)
        .with_context(|| format!("cannot create {}", parent.display()))?;
    let name = jiff::Timestamp::now()
        .strftime("map-%Y%m%d-%H%M%S")
        .to_string();
    for number in 1..1000 {
        let folder = parent.join(if number == 1 {
            name.clone()
        } else {
            format!("{name}-{number}")
        });
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot create {}", folder.display()));
            }
        }
    }
    bail!("too many maps saved to {} at this second", parent.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_saved_map_gets_a_folder_of_its_own() {
        let parent = tempfile::tempdir().unwrap();
        let folders: std::collections::BTreeSet<PathBuf> = (0..5)
            .map(|_| new_folder(&parent.path().join("maps")).unwrap())
            .collect();
        assert_eq!(folders.len(), 5);
        assert!(
            folders
                .iter()
                .all(|folder| folder.is_absolute() && folder.is_dir())
        );
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_with_its_path() {
        let parent = tempfile::NamedTempFile::new().unwrap();
        let error = new_folder(&parent.path().join("maps")).unwrap_err();
        assert!(format!("{error:#}").contains("maps"), "{error:#}");
    }
}
