//! Programs that stand for a camera on a ROS topic: a folder of images, and a walk through the computed room. With the
//! mapping node beside them they wait for it, have it save the map, and report what it measured.

mod encoding;
mod images;
mod mapping_node;
mod pace;
mod spinning;
mod truth;
mod world;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use r2r::QosProfile;
use r2r::sensor_msgs::msg::Image;

use crate::map::write_atomically;

pub use images::ImagesArguments;
pub use world::WorldArguments;

use mapping_node::Figures;

/// How cameras publish; the queue lets a slow reader miss images, not delay them.
fn camera_qos() -> QosProfile {
    QosProfile::sensor_data().keep_last(2)
}

/// Runs a player to its end.
fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(work);
    runtime.shutdown_background();
    outcome
}

fn check_rate(rate: f64) -> anyhow::Result<()> {
    ensure!(
        (0.01..=1000.0).contains(&rate),
        "--rate {rate}: 0.01 to 1000 images a second"
    );
    Ok(())
}

/// How long whoever listens may take to come.
const PATIENCE: Duration = Duration::from_secs(600);

async fn wait_for_a_listener(images: &r2r::Publisher<Image>) -> anyhow::Result<()> {
    let waiting = async {
        while images.get_inter_process_subscription_count()? == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .context("nobody listens to the images")?
}

/// Prints the figures and writes them as JSON.
fn report(figures: &Figures, file: Option<&Path>) -> anyhow::Result<()> {
    for (key, value) in figures {
        println!("   {key:30} {value}");
    }
    if let Some(file) = file {
        let text = serde_json::to_string_pretty(figures)?;
        write_atomically(file, |out| out.write_all(text.as_bytes()))?;
    }
    Ok(())
}
