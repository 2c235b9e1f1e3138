//! Plays a folder of images as a camera through ROS, waits until the node has mapped them, saves the map and prints
//! what the node measured. With the truth of a walk it also prints the path's error.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context, anyhow, bail};
use clap::Parser;
use futures::StreamExt;
use lingbot_map::camera::{ImageFolder, Stamp};
use lingbot_map::map::{Trajectory, evaluation::compare_paths};
use r2r::{
    QosProfile, diagnostic_msgs::msg::DiagnosticArray, sensor_msgs::msg::Image,
    std_srvs::srv::Trigger,
};

/// How long the node may take to load its model, and to map what it still has after the last image.
const PATIENCE: Duration = Duration::from_secs(600);

/// How often the node reports.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    /// Folder of JPEG or PNG images, played in the order of their names.
    images: PathBuf,
    #[arg(long, default_value = "/image")]
    topic: String,
    /// Images a second.
    #[arg(long, default_value_t = 10.0)]
    rate: f64,
    /// Name of the mapping node.
    #[arg(long, default_value = "/lingbot_map")]
    node: String,
    /// True path of the camera (TUM), a pose for each image in order.
    #[arg(long)]
    truth: Option<PathBuf>,
    /// Write the figures of the node as JSON to this file.
    #[arg(long)]
    figures: Option<PathBuf>,
}

type Figures = BTreeMap<String, String>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if !(0.01..=1000.0).contains(&arguments.rate) {
        bail!("--rate {}: 0.01 to 1000 images a second", arguments.rate);
    }
    let folder = ImageFolder::open(&arguments.images)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(play(&arguments, &folder));
    runtime.shutdown_background();
    outcome
}

async fn play(arguments: &Arguments, folder: &ImageFolder) -> anyhow::Result<()> {
    let context = r2r::Context::create()?;
    let mut node = r2r::Node::create(context, "camera_player", "")?;
    let images =
        node.create_publisher::<Image>(&arguments.topic, QosProfile::sensor_data().keep_last(2))?;
    let reports = node.subscribe::<DiagnosticArray>("/diagnostics", QosProfile::default())?;
    let service = format!("{}/save_map", arguments.node.trim_end_matches('/'));
    let save = node.create_client::<Trigger::Service>(&service, QosProfile::services_default())?;
    let available = r2r::Node::is_available(&save)?;

    let figures = Arc::new(Mutex::new(Figures::new()));
    tokio::spawn(collect(reports, arguments.node.clone(), figures.clone()));
    let stop = Arc::new(AtomicBool::new(false));
    let spinning = thread::spawn({
        let stop = stop.clone();
        move || {
            while !stop.load(Ordering::Relaxed) {
                node.spin_once(Duration::from_millis(20));
            }
        }
    });
    let outcome = async {
        wait_for(&figures, "the node to load its model", |figures| {
            figures
                .get("state")
                .is_some_and(|state| state != "starting")
        })
        .await?;
        let start = send_all(arguments, folder, &images).await?;
        let sent = folder.len() as u64;
        // Only reports made after the last image has arrived say how it ended.
        tokio::time::sleep(2 * REPORT_PERIOD).await;
        if let Ok(mut figures) = figures.lock() {
            figures.clear();
        }
        wait_for(&figures, "the node to map the last images", |figures| {
            is_idle(figures, sent)
        })
        .await?;
        available.await?;
        let answer = save.request(&Trigger::Request {})?.await?;
        if !answer.success {
            bail!("the map was not saved: {}", answer.message);
        }
        anyhow::Ok((PathBuf::from(answer.message), start))
    }
    .await;
    stop.store(true, Ordering::Relaxed);
    spinning
        .join()
        .map_err(|_| anyhow!("the ROS thread failed"))?;
    let (saved, start) = outcome?;
    let mut figures = figures
        .lock()
        .map_err(|_| anyhow!("the figures are lost"))?;
    figures.insert("map".into(), saved.display().to_string());
    if let Some(truth) = &arguments.truth {
        let error = path_error(&saved.join("trajectory.tum"), truth, start, arguments.rate)?;
        figures.insert("path error (ATE) m".into(), format!("{error:.3}"));
    }
    report(&figures, arguments.figures.as_deref())
}

/// Keeps the newest figures of the node named `node`.
async fn collect(
    mut reports: impl StreamExt<Item = DiagnosticArray> + Unpin,
    node: String,
    figures: Arc<Mutex<Figures>>,
) {
    let name = format!("{}: mapping", node.trim_matches('/'));
    while let Some(report) = reports.next().await {
        for status in report
            .status
            .into_iter()
            .filter(|status| status.name == name)
        {
            if let Ok(mut figures) = figures.lock() {
                *figures = status
                    .values
                    .into_iter()
                    .map(|pair| (pair.key, pair.value))
                    .collect();
            }
        }
    }
}

async fn wait_for(
    figures: &Mutex<Figures>,
    what: &str,
    done: impl Fn(&Figures) -> bool,
) -> anyhow::Result<()> {
    let waiting = async {
        while !figures.lock().is_ok_and(|figures| done(&figures)) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .with_context(|| format!("waited too long for {what}"))
}

fn number(figures: &Figures, key: &str) -> u64 {
    figures
        .get(key)
        .and_then(|value| value.parse().ok())
        .unwrap_or(0)
}

/// Whether every image that was sent has come to its end. Images that a best-effort transport lost never do, so the
/// count may stay a little below.
fn is_idle(figures: &Figures, sent: u64) -> bool {
    let received = number(figures, "frames in");
    let done = number(figures, "frames mapped")
        + number(figures, "frames dropped")
        + number(figures, "frames refused");
    let gathering = figures
        .get("state")
        .is_some_and(|state| state.starts_with("initialising"));
    received * 10 >= sent * 9 && (done >= received || gathering)
}

async fn send_all(
    arguments: &Arguments,
    folder: &ImageFolder,
    images: &r2r::Publisher<Image>,
) -> anyhow::Result<Stamp> {
    let bar = indicatif::ProgressBar::new(folder.len() as u64);
    bar.set_style(indicatif::ProgressStyle::with_template(
        "   playing {bar:40} {pos}/{len}",
    )?);
    let start = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let period = Duration::from_secs_f64(1.0 / arguments.rate);
    let mut ticks = tokio::time::interval(period);
    for index in 0..folder.len() {
        let picture = folder.frame(index)?.image;
        ticks.tick().await;
        let stamp = stamp_of(start, period, index)?;
        images.publish(&message(stamp, picture))?;
        bar.inc(1);
    }
    bar.finish();
    stamp_of(start, period, 0)
}

/// Stamps of a steady camera.
fn stamp_of(start: Duration, period: Duration, index: usize) -> anyhow::Result<Stamp> {
    let time = start + period * u32::try_from(index)?;
    Ok(Stamp(i64::try_from(time.as_nanos())?))
}

/// Absolute trajectory error of a saved path, in metres. Image i was stamped i periods after `start`; pose i of the
/// truth is its pose.
fn path_error(saved: &Path, truth: &Path, start: Stamp, rate: f64) -> anyhow::Result<f64> {
    let truth = Trajectory::read_tum(truth)?;
    let mut at_our_times = Trajectory::new();
    for (index, (_, pose)) in truth.iter().enumerate() {
        let offset = (index as f64 / rate * 1e9).round() as i64;
        at_our_times.push(Stamp(start.0 + offset), *pose);
    }
    Ok(compare_paths(&Trajectory::read_tum(saved)?, &at_our_times)?.ate_rmse_se3)
}

fn message(stamp: Stamp, picture: image::RgbImage) -> Image {
    let (sec, nanosec) = stamp.to_ros();
    let mut message = Image {
        width: picture.width(),
        height: picture.height(),
        step: picture.width() * 3,
        encoding: "rgb8".into(),
        data: picture.into_raw(),
        ..Default::default()
    };
    message.header.stamp = r2r::builtin_interfaces::msg::Time { sec, nanosec };
    message.header.frame_id = "camera_optical".into();
    message
}

fn report(figures: &Figures, file: Option<&Path>) -> anyhow::Result<()> {
    for (key, value) in figures {
        println!("   {key:30} {value}");
    }
    if let Some(file) = file {
        std::fs::write(file, serde_json::to_string_pretty(figures)?)
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
