//! The thread that spins ROS: everything that arrives goes from here to whom it concerns.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, Stream, StreamExt};
use r2r::{
    Node, QosProfile,
    sensor_msgs::msg::{CompressedImage, Image},
};

use super::{
    clock::Clock,
    health::Health,
    input::{Arrival, CameraMessage},
    parameters::Parameters,
    topics::image_topic,
    worker::Inbox,
};

/// How long a spin waits for something to happen, and so how soon a stop is noticed.
const SPIN: Duration = Duration::from_millis(50);

pub type Images = Box<dyn Stream<Item = CameraMessage> + Send + Unpin>;

pub fn subscribe(node: &mut Node, parameters: &Parameters) -> r2r::Result<Images> {
    let topic = image_topic(&parameters.image_topic, &parameters.image_transport);
    let newest = QosProfile::sensor_data().keep_last(2);
    Ok(if parameters.image_transport == "compressed" {
        Box::new(
            node.subscribe::<CompressedImage>(&topic, newest)?
                .map(CameraMessage::Compressed),
        )
    } else {
        Box::new(
            node.subscribe::<Image>(&topic, newest)?
                .map(CameraMessage::Raw),
        )
    })
}

/// Spins until `stop` is set. The images' channel is emptied after every spin, so it never fills up and drops.
pub fn run(
    mut node: Node,
    mut images: Images,
    clock: &Clock,
    inbox: &Inbox,
    health: &Health,
    stop: &Arc<AtomicBool>,
) {
    while !stop.load(Ordering::Relaxed) {
        node.spin_once(SPIN);
        while let Some(Some(message)) = images.next().now_or_never() {
            health.arrival();
            inbox.put_frame(Arrival {
                message,
                arrived: clock.now(),
            });
        }
    }
}
