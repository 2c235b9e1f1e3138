//! The thread that owns the mapper: takes the newest frame or a command, does it, publishes.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use anyhow::{Context as _, bail};
use tokio::sync::oneshot;

use super::{
    declare::SharedParameters,
    diagnostics::field_of_view_warning,
    frames::frame_name,
    health::{FieldOfView, Health, is_told},
    input::{Arrival, Decoder, Refusal},
    mailbox::{Mailbox, Work},
    outputs::Outputs,
    parameters::{Parameters, words},
    setup,
    tree::TransformTree,
};
use crate::{
    camera::{CameraInfo, Frame, Intrinsics, Rectification, Stamp},
    cli::describe,
    map::{MapError, MapFormat, ScaleSource},
    mapper::{MapUpdate, Mapper},
    stream::FrameType,
};

/// What services and timers ask of the worker. Replies go back through the channel in the command.
pub enum Command {
    Reset(oneshot::Sender<()>),
    /// The reply is the folder with the saved files.
    Save(oneshot::Sender<Result<PathBuf, String>>),
    /// The reply is the file.
    SaveTrajectory(oneshot::Sender<Result<PathBuf, String>>),
    /// Whether to pause or to go on.
    Pause(bool, oneshot::Sender<()>),
    PublishMap,
}

pub type Inbox = Mailbox<Arrival, Command>;

struct Worker {
    shared: SharedParameters,
    /// Those that everything goes by at the moment.
    parameters: Arc<Parameters>,
    health: Arc<Health>,
    outputs: Outputs,
    tree: Arc<TransformTree>,
    mapper: Mapper,
    /// Maps that `outputs` knows of.
    maps: u64,
    is_paused: bool,
    decoder: Decoder,
    /// Epoch and size of the images in the map.
    epoch: u64,
    size: Option<(u32, u32)>,
    /// Stamp of the newest frame that came out of it.
    last_mapped: Option<Stamp>,
}

/// Loads the model, then works until the inbox is closed.
pub fn run(
    shared: SharedParameters,
    health: Arc<Health>,
    outputs: Outputs,
    inbox: Arc<Inbox>,
    tree: Arc<TransformTree>,
) -> anyhow::Result<()> {
    let parameters = shared.current();
    let mapper = setup::open_mapper(&parameters)?;
    let status = mapper.status();
    log::info!("ready on provider {}", status.provider);
    if !parameters.autostart {
        log::info!("paused: call the service pause with false to begin");
    }
    {
        let mut state = health.lock();
        state.mapper = Some(status);
        state.is_paused = !parameters.autostart;
    }
    let mut worker = Worker {
        shared,
        is_paused: !parameters.autostart,
        parameters,
        health,
        outputs,
        tree,
        maps: mapper.maps_begun(),
        mapper,
        decoder: Decoder::default(),
        epoch: 0,
        size: None,
        last_mapped: None,
    };
    loop {
        let work = inbox.take();
        worker.take_parameters();
        match work {
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
    if worker.parameters.save_on_exit && !worker.mapper.trajectory().is_empty() {
        worker.save().context("the map was not saved on exit")?;
    }
    Ok(())
}

impl Worker {
    /// Lets what has been set anew come into force.
    fn take_parameters(&mut self) {
        let current = self.shared.current();
        if !Arc::ptr_eq(&current, &self.parameters) {
            self.mapper.set_filter(setup::filter(&current));
            self.outputs.set_parameters(current.clone());
            self.parameters = current;
        }
    }

    fn map(&mut self, arrival: Arrival) -> Result<(), Refusal> {
        if self.is_paused {
            self.health.lock().paused_frames += 1;
            return Ok(());
        }
        if arrival.epoch != self.epoch {
            self.epoch = arrival.epoch;
            self.reset();
        }
        let image = self.decoder.decode(&arrival.message)?;
        let camera = frame_name(
            &arrival.message.header().frame_id,
            &self.parameters.camera_frame,
        );
        self.health.lock().camera_frame.clone_from(&camera);
        self.check_size(image.dimensions())?;
        if let Some(info) = &arrival.calibration
            && self.mapper.set_camera_info(CameraInfo::clone(info))
        {
            self.note_calibration();
        }
        let is_calibrated = matches!(self.mapper.rectifier().calibration(), Ok(Some(_)));
        if self.parameters.rectify == "always" && !is_calibrated {
            return Err(Refusal::NoCalibration);
        }
        let frame = Frame {
            stamp: arrival.stamp,
            image,
        };

        let started = Instant::now();
        let updates = self.mapper.push(frame);
        let spent = started.elapsed();
        self.health.lock().mapping_time += spent;
        self.tell_new_maps();
        for update in updates? {
            self.compare_fields_of_view(&update);
            let scale = self.mapper.scale().scale();
            self.outputs.publish_update(&update, &camera, &scale);
            self.measure_scale(&update);
            self.last_mapped = Some(update.stamp);
            let mut state = self.health.lock();
            state.frames_mapped += 1;
            state.mapped.note(Instant::now());
            state.last_mapped = self.last_mapped;
            state.keyframes += u64::from(update.prediction.frame_type != FrameType::Other);
        }
        let latency = arrival.received.elapsed();
        self.health.lock().latencies.note(latency);
        Ok(())
    }

    fn measure_scale(&mut self, update: &MapUpdate) {
        let keeper = self.mapper.scale();
        if keeper.scale().is_metric {
            return;
        }
        let is_known = match keeper.source() {
            ScaleSource::Odometry => (self.outputs.odom_from_camera(update.stamp))
                .is_some_and(|pose| self.mapper.see_odometry(update, &pose)),
            ScaleSource::CameraHeight(_) => {
                let up = self.outputs.up_in_world();
                self.mapper.see_floor(update, &up)
            }
            ScaleSource::None | ScaleSource::Fixed { .. } => false,
        };
        if is_known {
            let keeper = self.mapper.scale();
            log::info!("lengths are metres from now on: {}", keeper.describe());
            self.outputs.scale_is_known(&keeper.scale());
        }
    }

    /// Whatever began a new map: what was published of the old one is no longer true.
    fn tell_new_maps(&mut self) {
        let maps = self.mapper.maps_begun();
        if maps != self.maps {
            self.maps = maps;
            self.outputs.map_was_reset();
            self.health.lock().keyframes = 0;
        }
    }

    /// Images of a map have one size.
    fn check_size(&mut self, size: (u32, u32)) -> Result<(), Refusal> {
        if self.size.is_some_and(|before| before != size) {
            if self.parameters.size_change == "refuse" {
                return Err(Refusal::SizeChange);
            }
            let mut state = self.health.lock();
            state.new_maps_by_size += 1;
            if is_told(state.new_maps_by_size) {
                log::warn!(
                    "images are {}x{} now: a new map begins ({} so far)",
                    size.0,
                    size.1,
                    state.new_maps_by_size
                );
            }
            drop(state);
            self.reset();
        }
        self.size = Some(size);
        Ok(())
    }

    fn note_calibration(&self) {
        let rectifier = self.mapper.rectifier();
        let text = match (rectifier.calibration(), rectifier.decision()) {
            (Err(error), _) => {
                log::warn!("the calibration cannot be used: {error}");
                format!("unusable: {error}")
            }
            (Ok(None), _) => "uncalibrated: the network's own field of view is used".into(),
            (Ok(Some(_)), Some(Rectification::Needed)) => "images are rectified".into(),
            (Ok(Some(_)), Some(Rectification::Done)) => "images come rectified".into(),
            (Ok(Some(_)), _) => "images are used as they are".into(),
        };
        log::info!("calibration: {text}");
        self.health.lock().calibration = text;
    }

    /// Keeps the mean of the predicted field of view beside the calibrated one, and tells a large difference once.
    fn compare_fields_of_view(&mut self, update: &MapUpdate) {
        let Some(calibrated) = &update.calibrated else {
            return;
        };
        let size = self.mapper.manifest().size;
        let horizontal = |k: &Intrinsics| k.field_of_view(size).1.to_degrees();
        let (now, calibrated) = (horizontal(&update.predicted), horizontal(calibrated));
        let mut state = self.health.lock();
        let was_told = field_of_view_warning(&state, &self.parameters).is_some();
        let predicted = (state.field_of_view)
            .filter(|seen| seen.calibrated == calibrated)
            .map_or(now, |seen| seen.predicted + 0.1 * (now - seen.predicted));
        state.field_of_view = Some(FieldOfView {
            predicted,
            calibrated,
        });
        if let Some(text) = field_of_view_warning(&state, &self.parameters)
            && !was_told
        {
            log::warn!("{text}");
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
                let _ = done.send(self.save().map_err(|error| describe(&error)));
            }
            Command::SaveTrajectory(done) => {
                let saved = self.save_trajectory();
                let _ = done.send(saved.map_err(|error| describe(&error)));
            }
            Command::Pause(pauses, done) => {
                self.is_paused = pauses;
                self.health.lock().is_paused = pauses;
                log::info!("{}", if pauses { "paused" } else { "mapping goes on" });
                let _ = done.send(());
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
        self.tell_new_maps();
    }

    fn save(&self) -> anyhow::Result<PathBuf> {
        if self.mapper.trajectory().is_empty() {
            bail!("there is no map yet");
        }
        let folder = in_new_folder(Path::new(&self.parameters.output_dir), |folder| {
            self.mapper.save(folder)?;
            self.mapper.save_as(&self.formats(), folder)
        })?;
        log::info!("map saved to {}", folder.display());
        Ok(folder)
    }

    fn formats(&self) -> Vec<MapFormat> {
        let names = words(&self.parameters.map_formats);
        names.filter_map(|name| name.parse().ok()).collect()
    }

    fn save_trajectory(&self) -> anyhow::Result<PathBuf> {
        if self.mapper.trajectory().is_empty() {
            bail!("there is no trajectory yet");
        }
        let scale = self.mapper.scale().scale();
        let trajectory = self.mapper.trajectory().scaled(&scale);
        const NAME: &str = "trajectory.tum";
        let folder = in_new_folder(Path::new(&self.parameters.output_dir), |folder| {
            trajectory.write_tum(folder.join(NAME))?;
            if self.formats().contains(&MapFormat::Kitti) {
                MapFormat::Kitti.write(folder, &[], &trajectory)?;
            }
            Ok::<(), MapError>(())
        })?;
        let file = folder.join(NAME);
        log::info!("trajectory saved to {}", file.display());
        Ok(file)
    }

    fn note_state(&self) {
        let mut state = self.health.lock();
        state.mapper = Some(self.mapper.status());
        state.unusable_transforms = self.tree.unusable();
        state.odometry_missing = self.outputs.odometry_missing();
        state.scale = self.mapper.scale().describe();
    }
}

/// Saves into a new folder inside `parent`. Where that fails, nothing of it is left.
fn in_new_folder<E: std::error::Error + Send + Sync + 'static>(
    parent: &Path,
    save: impl FnOnce(&Path) -> Result<(), E>,
) -> anyhow::Result<PathBuf> {
    let folder = new_folder(parent)?;
    if let Err(error) = save(&folder) {
        if let Err(left) = std::fs::remove_dir_all(&folder) {
            log::warn!("{} stays, half full: {left}", folder.display());
        }
        return Err(error.into());
    }
    Ok(folder)
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
    fn of_a_save_that_fails_nothing_is_left() {
        let parent = tempfile::tempdir().unwrap();
        let failed = in_new_folder(parent.path(), |folder| {
            std::fs::write(folder.join("part"), b"half of it")?;
            Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
        });
        assert!(failed.is_err());
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_with_its_path() {
        let parent = tempfile::NamedTempFile::new().unwrap();
        let error = new_folder(&parent.path().join("maps")).unwrap_err();
        assert!(format!("{error:#}").contains("maps"), "{error:#}");
    }
}
