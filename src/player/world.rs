//! A walk through the computed room as a camera, with its truth, and with faults on request.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use indicatif::ProgressBar;
use r2r::Publisher;
use r2r::sensor_msgs::msg::{self, CameraInfo};
use r2r::std_msgs::msg::Header;

use super::encoding::{SentEncoding, image};
use super::mapping_node::{Figures, MappingNode};
use super::pace::Pace;
use super::spinning::Spinning;
use super::truth::TruthTopics;
use super::{block_on, camera_qos, check_rate, report, wait_for_a_listener};
use crate::camera::Stamp;
use crate::cli::interrupt::Interrupt;
use crate::cli::progress;
use crate::cli::world::{GrowingTruth, WalkArguments};
use crate::geometry::Intrinsics;
use crate::node::messages::{camera_info, header};
use crate::node::topics::camera_info_topic;
use crate::world::{
    Camera, ClockJump, FaultConfig, FaultCounts, Faults, Image, PaintedRoom, render,
};

/// What was sent last needs this long to get out.
const LAST_MESSAGES: Duration = Duration::from_millis(300);

#[derive(Debug, Args)]
pub struct WorldArguments {
    /// Topic of the images; the calibration goes to camera_info beside it
    #[arg(long, default_value = "/image")]
    topic: String,
    /// Images a second
    #[arg(long, value_name = "HZ", default_value_t = 10.0)]
    rate: f64,
    /// Images to send [default: without end]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    frames: Option<u64>,
    /// Seed of the walk and of the faults: the same seed gives the same images
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    walk: WalkArguments,
    /// How the images are encoded
    #[arg(long, value_enum, default_value_t)]
    encoding: SentEncoding,
    /// The images' frame_id
    #[arg(long, default_value = "camera_optical")]
    frame_id: String,
    /// Write pictures, depth and poses to this folder, as `lingbot_map world` does, with the stamps of the images
    #[arg(long, value_name = "FOLDER")]
    truth: Option<PathBuf>,
    /// Full name of the mapping node that --figures is about
    #[arg(long, default_value = "/lingbot_map")]
    node: String,
    /// Wait for the mapping node, have it save the map in the end, and write its figures as JSON to this file
    #[arg(long, value_name = "FILE", requires = "frames")]
    figures: Option<PathBuf>,
    #[command(flatten)]
    faults: FaultArguments,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Faults")]
struct FaultArguments {
    /// Add noise of this standard deviation, levels of 255
    #[arg(long, value_name = "SIGMA", default_value_t = 0.0)]
    noise: f64,
    /// Let the brightness jump every 25 images, by up to a factor of two
    #[arg(long)]
    exposure_steps: bool,
    /// Lose so many of the images, at random
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    drop: f64,
    /// Show one even colour, as a wall up close does, for LENGTH images from number START on
    #[arg(long, value_name = "START:LENGTH", value_parser = parse_range)]
    textureless: Option<Range<u64>>,
    /// Blacken so many rows at the top and at the bottom
    #[arg(long, value_name = "PIXELS", default_value_t = 0)]
    black_bars: u32,
    /// Set the camera's clock forward (or back, if negative) from number FRAME on
    #[arg(long, value_name = "FRAME:SECONDS", value_parser = parse_jump, allow_hyphen_values = true)]
    clock_jump: Option<ClockJump>,
}

fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let parsed = text.split_once(':').and_then(|(start, length)| {
        let (start, length): (u64, u64) = (start.parse().ok()?, length.parse().ok()?);
        Some(start..start.checked_add(length)?)
    });
    parsed.ok_or_else(|| "two whole numbers, as in 100:20".into())
}

fn parse_jump(text: &str) -> Result<ClockJump, String> {
    let parsed = text.split_once(':').and_then(|(frame, seconds)| {
        let (frame, seconds) = (frame.parse().ok()?, seconds.parse::<f64>().ok()?);
        // Some 30 years, within what a stamp can hold.
        let is_possible = (-1e9..=1e9).contains(&seconds);
        is_possible.then_some(ClockJump { frame, seconds })
    });
    parsed.ok_or_else(|| "a whole number and seconds, as in 100:-5.5".into())
}

impl FaultArguments {
    fn config(&self, seed: u64) -> anyhow::Result<FaultConfig> {
        ensure!(
            (0.0..=255.0).contains(&self.noise),
            "--noise {}: 0 to 255",
            self.noise
        );
        ensure!(
            (0.0..=100.0).contains(&self.drop),
            "--drop {}: 0 to 100 per cent",
            self.drop
        );
        Ok(FaultConfig {
            seed,
            noise: self.noise,
            exposure_steps: self.exposure_steps,
            drop_percent: self.drop,
            textureless: self.textureless.clone().unwrap_or_default(),
            black_bars: self.black_bars,
            clock_jump: self.clock_jump,
        })
    }
}

impl WorldArguments {
    /// Walks until all images are sent, or until interrupted, then says how many and what was wrong with them.
    pub fn run(&self) -> anyhow::Result<()> {
        check_rate(self.rate)?;
        self.walk.check()?;
        let faults = Faults::new(self.faults.config(self.seed)?);
        let camera = self.walk.camera();
        let truth = match &self.truth {
            Some(folder) => Some(GrowingTruth::begin(folder, &camera, self.seed)?),
            None => None,
        };
        let interrupt = Interrupt::listen()?;
        block_on(self.play(camera, faults, truth, &interrupt))
    }

    async fn play(
        &self,
        camera: Camera,
        faults: Faults,
        truth: Option<GrowingTruth>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let context = r2r::Context::create()?;
        let mut node = r2r::Node::create(context, "world_camera", "")?;
        let mapping = match &self.figures {
            Some(_) => Some(MappingNode::watch(&mut node, &self.node)?),
            None => None,
        };
        let mut sender = Sender {
            images: node.create_publisher(&self.topic, camera_qos())?,
            infos: node.create_publisher(&camera_info_topic(&self.topic), camera_qos())?,
            truth_topics: TruthTopics::new(&mut node)?,
            truth,
            camera,
            info: calibration(&camera),
            faults,
            encoding: self.encoding,
            frame_id: self.frame_id.clone(),
            sent: 0,
        };
        let _spinning = Spinning::start(node);
        tokio::select! {
            ready = async {
                if let Some(mapping) = &mapping {
                    mapping.wait_until_loaded().await?;
                }
                wait_for_a_listener(&sender.images).await
            } => ready?,
            () = interrupted(interrupt) => return Ok(()),
        }
        let rate = self.walk_on(&mut sender, interrupt).await?;
        if let Some(truth) = sender.truth.take() {
            truth.finish()?;
        }
        let mut figures = match mapping {
            Some(mapping) if !interrupt.is_set() => mapping.finish(sender.sent).await?,
            _ => {
                tokio::time::sleep(LAST_MESSAGES).await;
                Figures::new()
            }
        };
        figures.insert("camera: images sent".into(), sender.sent.to_string());
        if let Some(rate) = rate {
            figures.insert("camera: images a second".into(), format!("{rate:.2}"));
        }
        figures.extend(told(sender.faults.counts()));
        report(&figures, self.figures.as_deref())
    }

    /// Returns the rate that was kept.
    async fn walk_on(
        &self,
        sender: &mut Sender,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Option<f64>> {
        let bar = self.frames.map_or_else(ProgressBar::hidden, |frames| {
            progress::frames("walking", frames as usize)
        });
        let painted = PaintedRoom::new();
        let mut room_from_world = None;
        let mut picture = Image::default();
        let mut pace = Pace::new(self.rate)?;
        let numbers = 0..self.frames.unwrap_or(u64::MAX);
        for (number, room_from_camera) in numbers.zip(self.walk.poses(painted.room(), self.seed)) {
            // Before it is due, so that the beat does not depend on how long a picture takes.
            render(&painted, &sender.camera, &room_from_camera, &mut picture);
            let stamp = pace.tick().await;
            if interrupt.is_set() {
                break;
            }
            let room_from_world = room_from_world.get_or_insert(room_from_camera);
            if let Some(truth) = &mut sender.truth {
                truth.push(stamp, &picture, &room_from_camera)?;
            }
            let world_from_camera = room_from_world.inv_mul(&room_from_camera);
            sender.truth_topics.publish(stamp, world_from_camera)?;
            sender.send(number, stamp, &mut picture)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(pace.measured())
    }
}

async fn interrupted(interrupt: &Interrupt) {
    while !interrupt.is_set() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

struct Sender {
    images: Publisher<msg::Image>,
    infos: Publisher<CameraInfo>,
    truth_topics: TruthTopics,
    truth: Option<GrowingTruth>,
    camera: Camera,
    info: CameraInfo,
    faults: Faults,
    encoding: SentEncoding,
    frame_id: String,
    sent: u64,
}

impl Sender {
    /// Sends one picture with its faults, which stay in it.
    fn send(&mut self, number: u64, stamp: Stamp, picture: &mut Image) -> anyhow::Result<()> {
        let size = (self.camera.width, self.camera.height);
        self.truth_topics
            .publish_depth(stamp, &self.frame_id, size, picture)?;
        let Some(offset) = self.faults.spoil(number, size.0, &mut picture.rgb) else {
            return Ok(());
        };
        let stamp = Stamp(stamp.0.saturating_add(offset));
        self.info.header = header(stamp, &self.frame_id);
        self.infos
            .publish(&self.info)
            .context("the calibration was not sent")?;
        self.images
            .publish(&image(
                stamp,
                &self.frame_id,
                size,
                &picture.rgb,
                self.encoding,
            ))
            .context("the image was not sent")?;
        self.sent += 1;
        Ok(())
    }
}

fn calibration(camera: &Camera) -> CameraInfo {
    let &Camera { fx, fy, cx, cy, .. } = camera;
    let size = (camera.height as usize, camera.width as usize);
    camera_info(Header::default(), size, &Intrinsics { fx, fy, cx, cy })
}

/// The faults that there were.
fn told(counts: FaultCounts) -> impl Iterator<Item = (String, String)> {
    let all = [
        ("noisy images", counts.noisy),
        ("exposure steps", counts.exposure_steps),
        ("images lost", counts.dropped),
        ("textureless images", counts.textureless),
        ("images with black bars", counts.black_bars),
        ("clock jumps", counts.clock_jumps),
    ];
    all.into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| (format!("camera: {what}"), count.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::camera::CameraModel;
    use crate::node::input::calibration_of;

    #[test]
    fn faults_are_written_as_two_numbers() {
        assert_eq!(parse_range("100:20"), Ok(100..120));
        assert_eq!(
            parse_jump("7:-5.5"),
            Ok(ClockJump {
                frame: 7,
                seconds: -5.5
            })
        );
        for text in [
            "",
            "5",
            "5:",
            ":5",
            "-1:5",
            "1:2:3",
            "18446744073709551615:1",
        ] {
            assert!(parse_range(text).is_err(), "{text}");
        }
        for text in ["", "5", "x:1", "5:nan", "5:1e12"] {
            assert!(parse_jump(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_calibration_is_the_cameras_and_without_distortion() {
        let camera = Camera::from_field_of_view(112, 84, 1.3);
        let info = calibration_of(calibration(&camera));
        let model = CameraModel::from_info(&info).unwrap().unwrap();
        assert!(!model.is_distorted());
        for k in [model.intrinsics(), model.rectified_intrinsics()] {
            assert_eq!(
                (k.fx, k.fy, k.cx, k.cy),
                (camera.fx, camera.fy, camera.cx, camera.cy)
            );
        }
    }
}
