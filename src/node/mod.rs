//! The ROS 2 node: a thin shell around [`crate::mapper::Mapper`].
//!
//! Three kinds of thread. One spins ROS and puts the newest image into a one-slot mailbox. One owns the mapper, takes
//! the image from there, maps it and publishes. Tokio serves services, timers and signals.
//!
//! Everything published about an image carries the stamp of that image. Axes change in [`frames`] and nowhere else.

mod clock;
mod declare;
mod diagnostics;
mod frames;
mod health;
pub(crate) mod input;
mod logging;
mod mailbox;
pub(crate) mod messages;
mod order;
mod outputs;
pub mod parameters;
pub(crate) mod route;
mod services;
mod setup;
mod spin;
mod statistics;
pub(crate) mod topics;
mod tree;
mod worker;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use anyhow::{Context as _, anyhow};
use r2r::{
    QosProfile,
    std_srvs::srv::{SetBool, Trigger},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::oneshot,
};

use crate::cli::describe;

use self::{
    clock::Clock,
    declare::SharedParameters,
    health::Health,
    order::Order,
    outputs::Outputs,
    spin::{Receiver, Subscriptions},
    topics::{NodeName, Topics},
    tree::TransformTree,
    worker::{Command, Inbox},
};

/// The node's name where the command line gives no other.
pub const NODE_NAME: &str = "lingbot_map";

/// Runs the node until SIGINT or SIGTERM, or until it cannot go on. Takes ROS arguments from the command line.
pub async fn run() -> anyhow::Result<()> {
    // First of all: a signal that comes while the node starts ends it as well.
    let mut signals = Signals::new()?;
    let mut node = create_node()?;
    let (parameters, unknown) = declare::read(&node)?;
    for sentence in unknown {
        log::warn!("{sentence}");
    }
    let shared = SharedParameters::new(parameters);
    let (parameter_services, _changes) = node.make_derived_parameter_handler(shared.served())?;
    tokio::spawn(parameter_services);

    let parameters = shared.current();
    let health = Arc::new(Health::default());
    let inbox = Arc::new(Inbox::default());
    let clock = Clock::of(&node);
    let name = NodeName {
        namespace: &node.namespace()?,
        name: &node.name()?,
    };
    let topics = Topics::new(&parameters, name, std::env::args());
    let subscriptions = Subscriptions::new(&mut node, &parameters, &topics)
        .with_context(|| format!("cannot subscribe to {}", topics.image))?;
    let tree = Arc::new(TransformTree::default());
    let outputs = Outputs::new(&mut node, parameters.clone(), tree.clone())?;
    serve(&mut node, &shared, &clock, &health, &inbox, &topics)?;
    log::info!(
        "listening to {} ({})",
        topics.image_resolved,
        parameters.image_transport
    );

    let stop = Arc::new(AtomicBool::new(false));
    // The senders fall with their threads, so that an end is noticed however it comes.
    let (alive, deaf) = oneshot::channel::<()>();
    let spinning = thread::Builder::new().name("ros".into()).spawn({
        let stop = stop.clone();
        let mut receiver = Receiver {
            parameters: shared.clone(),
            topics,
            clock,
            inbox: inbox.clone(),
            health: health.clone(),
            order: Order::default(),
            epoch: 0,
            calibration: None,
            tree: tree.clone(),
        };
        move || {
            let _alive = alive;
            receiver.run(node, subscriptions, &stop);
        }
    })?;
    let (end, mut ended) = oneshot::channel();
    let working = thread::Builder::new().name("mapper".into()).spawn({
        let (inbox, health) = (inbox.clone(), health.clone());
        move || {
            let _ = end.send(worker::run(shared, health, outputs, inbox, tree));
        }
    })?;

    let outcome = tokio::select! {
        result = &mut ended => result.unwrap_or_else(|_| Err(anyhow!("the mapper's thread failed"))),
        _ = deaf => Err(anyhow!("the ROS thread failed")),
        name = signals.next() => {
            log::info!("{name}: ending");
            inbox.close();
            if health.lock().mapper.is_none() {
                // Still loading, nothing to keep: do not wait for a model that nobody wants any more.
                Ok(())
            } else {
                tokio::select! {
                    result = ended => result.unwrap_or_else(|_| Err(anyhow!("the mapper's thread failed"))),
                    name = signals.next() => Err(anyhow!("{name} again: ended without waiting for the running step")),
                }
            }
        }
    };
    stop.store(true, Ordering::Relaxed);
    // Both results are known by now; joining only waits for the last messages to be out.
    let _ = spinning.join();
    if working.is_finished() {
        let _ = working.join();
        return outcome;
    }
    // The mapper is inside ONNX Runtime. Leaving through `exit` would destroy what its thread is using.
    let code = match &outcome {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("error: {}", describe(error));
            1
        }
    };
    signal_hook::low_level::exit(code)
}

/// Creates the node from the ROS arguments on the command line. r2r panics on arguments that rcl refuses.
fn create_node() -> anyhow::Result<r2r::Node> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let created = std::panic::catch_unwind(|| -> anyhow::Result<r2r::Node> {
        let context = r2r::Context::create().context("ROS cannot be initialised")?;
        logging::init();
        r2r::Node::create(context, NODE_NAME, "").context("the node cannot be created")
    });
    std::panic::set_hook(hook);
    created.unwrap_or_else(|_| {
        Err(anyhow!(
            "ROS refuses the arguments after --ros-args: check parameters (name:=value, not empty), names and files"
        ))
    })
}

/// Starts everything that tokio serves.
fn serve(
    node: &mut r2r::Node,
    parameters: &SharedParameters,
    clock: &Clock,
    health: &Arc<Health>,
    inbox: &Arc<Inbox>,
    topics: &Topics,
) -> anyhow::Result<()> {
    let qos = QosProfile::services_default;
    let reset = node.create_service::<Trigger::Service>("~/reset", qos())?;
    tokio::spawn(services::serve(
        Box::new(reset),
        inbox.clone(),
        Command::Reset,
        |()| Ok("a new map begins".into()),
    ));
    let save = node.create_service::<Trigger::Service>("~/save_map", qos())?;
    tokio::spawn(services::serve(
        Box::new(save),
        inbox.clone(),
        Command::Save,
        |saved| saved.map(|folder| folder.display().to_string()),
    ));
    let save_trajectory = node.create_service::<Trigger::Service>("~/save_trajectory", qos())?;
    tokio::spawn(services::serve(
        Box::new(save_trajectory),
        inbox.clone(),
        Command::SaveTrajectory,
        |saved| saved.map(|file| file.display().to_string()),
    ));
    let pause = node.create_service::<SetBool::Service>("~/pause", qos())?;
    tokio::spawn(services::serve_pause(Box::new(pause), inbox.clone()));
    tokio::spawn(services::publish_map_regularly(
        inbox.clone(),
        parameters.clone(),
    ));
    let diagnostics = node.create_publisher("/diagnostics", QosProfile::default())?;
    let names = (node.fully_qualified_name()?, topics.image_resolved.clone());
    tokio::spawn(services::publish_diagnostics(
        diagnostics,
        clock.clone(),
        health.clone(),
        inbox.clone(),
        parameters.clone(),
        names,
    ));
    Ok(())
}

/// The two signals that ask a process to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt()).context("SIGINT")?,
            terminate: signal(SignalKind::terminate()).context("SIGTERM")?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
