//! A folder of images as a camera.

use std::path::PathBuf;

use clap::Args;
use r2r::sensor_msgs::msg::Image;

use super::encoding::{SentEncoding, image};
use super::mapping_node::MappingNode;
use super::pace::Pace;
use super::spinning::Spinning;
use super::{block_on, camera_qos, check_rate, report};
use crate::camera::ImageFolder;
use crate::cli::progress;

#[derive(Debug, Args)]
pub struct ImagesArguments {
    /// Folder of JPEG or PNG images, played in the order of their names
    images: PathBuf,
    #[arg(long, default_value = "/image")]
    topic: String,
    /// Images a second
    #[arg(long, value_name = "HZ", default_value_t = 10.0)]
    rate: f64,
    /// Full name of the mapping node
    #[arg(long, default_value = "/lingbot_map")]
    node: String,
    /// Write the figures of the node as JSON to this file
    #[arg(long, value_name = "FILE")]
    figures: Option<PathBuf>,
}

impl ImagesArguments {
    /// Plays the folder, waits until the mapping node is done with it, has it save the map and prints what it measured.
    pub fn run(&self) -> anyhow::Result<()> {
        check_rate(self.rate)?;
        let folder = ImageFolder::open(&self.images)?;
        block_on(self.play(&folder))
    }

    async fn play(&self, folder: &ImageFolder) -> anyhow::Result<()> {
        let context = r2r::Context::create()?;
        let mut node = r2r::Node::create(context, "camera_player", "")?;
        let images = node.create_publisher::<Image>(&self.topic, camera_qos())?;
        let mapping = MappingNode::watch(&mut node, &self.node)?;
        let _spinning = Spinning::start(node);
        mapping.wait_until_loaded().await?;

        let bar = progress::frames("playing", folder.len());
        let mut pace = Pace::new(self.rate)?;
        for index in 0..folder.len() {
            let picture = folder.frame(index)?.image;
            let stamp = pace.tick().await;
            let (size, rgb) = (picture.dimensions(), picture.as_raw());
            images.publish(&image(
                stamp,
                "camera_optical",
                size,
                rgb,
                SentEncoding::Rgb8,
            ))?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        let figures = mapping.finish(folder.len() as u64).await?;
        report(&figures, self.figures.as_deref())
    }
}
