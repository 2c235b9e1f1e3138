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
    worker::Inbox,
};

/// How long a spin waits for something to happen, and so how soon a stop is noticed.
const SPIN: Duration = Duration::from_millis(50);

pub type Images = Box<dyn Stream<Item = CameraMessage> + Send + Unpin>;

/// The topic that is really listened to: transports other than raw have one below the base topic.
pub fn image_topic(parameters: &Parameters) -> String {
    let base = parameters.image_topic.trim_end_matches('/');
    if parameters.image_transport == "compressed" && !base.ends_with("/compressed") {
        format!("{base}/compressed")
    } else {
        base.to_string()
    }
}

pub fn subscribe(node: &mut Node, parameters: &Parameters) -> r2r::Result<Images> {
    let topic = image_topic(parameters);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_images_lie_below_the_base_topic() {
        let topic = |topic: &str, transport: &str| {
            image_topic(&Parameters {
                image_topic: topic.into(),
                image_transport: transport.into(),
                ..Default::default()
            })
        };
        assert_eq!(topic("/camera/image_raw", "raw"), "/camera/image_raw");
        assert_eq!(
            topic("/camera/image_raw", "compressed"),
            "/camera/image_raw/compressed"
        );
        assert_eq!(
            topic("/camera/image_raw/compressed", "compressed"),
            "/camera/image_raw/compressed"
        );
    }
}
