//! The thread that spins ROS: everything that arrives goes from here to whom it concerns.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{FutureExt, Stream, StreamExt};
use r2r::{
    Node, QosProfile,
    qos::ReliabilityPolicy,
    sensor_msgs::msg::{self, CompressedImage, Image},
    tf2_msgs::msg::TFMessage,
};

use super::{
    clock::Clock,
    declare::SharedParameters,
    health::{Health, Publisher, Publishers},
    input::{Arrival, CameraMessage, Refusal, calibration_of, stamp_of},
    order::{NewMap, Order, OrderRules, Verdict},
    parameters::Parameters,
    topics::Topics,
    tree::TransformTree,
    worker::Inbox,
};
use crate::camera::CameraInfo;

/// How long a spin waits for something to happen, and so how soon a stop is noticed.
const SPIN: Duration = Duration::from_millis(50);
/// How often the camera's publishers are looked at.
const LOOK: Duration = Duration::from_secs(1);

type Messages<T> = Box<dyn Stream<Item = T> + Send + Unpin>;

/// What the camera and the robot send, as it comes.
pub struct Subscriptions {
    images: Messages<CameraMessage>,
    calibrations: Messages<msg::CameraInfo>,
    transforms: Messages<TFMessage>,
    static_transforms: Messages<TFMessage>,
}

impl Subscriptions {
    pub fn new(
        node: &mut Node,
        parameters: &Parameters,
        topics: &Topics,
    ) -> r2r::Result<Subscriptions> {
        let qos = || {
            let depth = usize::try_from(parameters.qos_depth).unwrap_or(1);
            let newest = QosProfile::sensor_data().keep_last(depth);
            if parameters.qos_reliability == "reliable" {
                newest.reliable()
            } else {
                newest
            }
        };
        let images: Messages<CameraMessage> = if parameters.image_transport == "compressed" {
            Box::new(
                node.subscribe::<CompressedImage>(&topics.image, qos())?
                    .map(CameraMessage::Compressed),
            )
        } else {
            Box::new(
                node.subscribe::<Image>(&topics.image, qos())?
                    .map(CameraMessage::Raw),
            )
        };
        let calibrations = node.subscribe::<msg::CameraInfo>(&topics.camera_info, qos())?;
        let all = || QosProfile::default().keep_last(100).reliable();
        let transforms = node.subscribe::<TFMessage>("/tf", all())?;
        let static_transforms =
            node.subscribe::<TFMessage>("/tf_static", all().transient_local())?;
        Ok(Subscriptions {
            images,
            calibrations: Box::new(calibrations),
            transforms: Box::new(transforms),
            static_transforms: Box::new(static_transforms),
        })
    }
}

/// Hands what arrives to the worker.
pub struct Receiver {
    pub parameters: SharedParameters,
    pub topics: Topics,
    pub clock: Clock,
    pub inbox: Arc<Inbox>,
    pub health: Arc<Health>,
    pub order: Order,
    pub epoch: u64,
    pub calibration: Option<Arc<CameraInfo>>,
    pub tree: Arc<TransformTree>,
}

impl Receiver {
    /// Spins until `stop` is set. The channels are emptied after every spin, so they never fill up and drop.
    pub fn run(&mut self, mut node: Node, mut subscriptions: Subscriptions, stop: &AtomicBool) {
        let mut looked = None::<Instant>;
        while !stop.load(Ordering::Relaxed) {
            node.spin_once(SPIN);
            while let Some(Some(message)) = subscriptions.static_transforms.next().now_or_never() {
                self.tree.take(message.transforms, true);
            }
            while let Some(Some(message)) = subscriptions.transforms.next().now_or_never() {
                self.tree.take(message.transforms, false);
            }
            while let Some(Some(info)) = subscriptions.calibrations.next().now_or_never() {
                self.take_calibration(calibration_of(info));
            }
            while let Some(Some(message)) = subscriptions.images.next().now_or_never() {
                self.health.arrival();
                if let Err(refusal) = self.admit(message) {
                    self.health.refuse(&refusal);
                }
            }
            if looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
                looked = Some(Instant::now());
                self.look_at_publishers(&node);
            }
        }
    }

    fn take_calibration(&mut self, info: CameraInfo) {
        if self.calibration.as_deref() != Some(&info) {
            self.calibration = Some(Arc::new(info));
        }
    }

    fn admit(&mut self, message: CameraMessage) -> Result<(), Refusal> {
        let parameters = self.parameters.current();
        let stamp = stamp_of(message.header(), self.clock.now(), &parameters)?;
        let rules = OrderRules {
            clock_jump: parameters.clock_jump_seconds,
            new_map_gap: parameters.new_map_gap_seconds,
            gap_warning: parameters.gap_warning_seconds,
        };
        match self.order.judge(stamp, &rules) {
            Verdict::Refused(disorder) => return Err(disorder.into()),
            Verdict::Continues => {}
            Verdict::AfterGap => self.health.lock().gaps += 1,
            Verdict::NewMap(reason) => {
                self.epoch += 1;
                match reason {
                    NewMap::ClockWentBack => {
                        self.tree.forget_times();
                        self.health.clock_jump();
                    }
                    NewMap::Gap => self.health.lock().new_maps_by_gap += 1,
                }
            }
        }
        self.inbox.put_frame(Arrival {
            message,
            stamp,
            epoch: self.epoch,
            received: Instant::now(),
            calibration: self.calibration.clone(),
        });
        Ok(())
    }

    fn look_at_publishers(&self, node: &Node) {
        match node.get_publishers_info_by_topic(&self.topics.image_resolved, false) {
            Ok(found) => {
                let asks_reliable = self.parameters.current().qos_reliability == "reliable";
                let found: Vec<_> = (found.into_iter())
                    .map(|publisher| Publisher {
                        node: format!(
                            "{}/{}",
                            publisher.node_namespace.trim_end_matches('/'),
                            publisher.node_name
                        ),
                        message_type: publisher.topic_type,
                        is_best_effort: matches!(
                            publisher.qos_profile.reliability,
                            ReliabilityPolicy::BestEffort
                        ),
                    })
                    .collect();
                let publishers = Publishers::new(&found, self.topics.image_type, asks_reliable);
                self.health.publishers(publishers);
            }
            Err(error) => log::debug!("the publishers of the images are not known: {error}"),
        }
    }
}
