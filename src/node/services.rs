//! What tokio serves: the services, the map's timer and the diagnostics.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{Stream, StreamExt};
use r2r::{
    Publisher, ServiceRequest,
    diagnostic_msgs::msg::DiagnosticArray,
    std_srvs::srv::{SetBool, Trigger},
};
use tokio::{
    sync::oneshot,
    time::{MissedTickBehavior, interval, sleep},
};

use super::{
    clock::Clock,
    declare::SharedParameters,
    diagnostics,
    health::Health,
    logging::without_nul,
    worker::{Command, Inbox},
};

type Requests<T> = Box<dyn Stream<Item = ServiceRequest<T>> + Send + Unpin>;

/// Answers one service, request after request: `command` carries the channel for the reply, `answer` words it.
pub async fn serve<R>(
    mut requests: Requests<Trigger::Service>,
    inbox: Arc<Inbox>,
    command: fn(oneshot::Sender<R>) -> Command,
    answer: fn(R) -> Result<String, String>,
) {
    while let Some(request) = requests.next().await {
        let outcome = ask(&inbox, command).await.and_then(answer);
        let (success, message) = match outcome {
            Ok(message) => (true, message),
            Err(message) => (false, message),
        };
        if let Err(error) = request.respond(Trigger::Response {
            success,
            message: without_nul(&message),
        }) {
            log::debug!("a service reply was not sent: {error}");
        }
    }
}

/// Answers the pause service: true pauses, false goes on.
pub async fn serve_pause(mut requests: Requests<SetBool::Service>, inbox: Arc<Inbox>) {
    while let Some(request) = requests.next().await {
        let pauses = request.message.data;
        let outcome = ask(&inbox, |reply| Command::Pause(pauses, reply)).await;
        let (success, message) = match outcome {
            Ok(()) if pauses => (true, "paused: images are not mapped".to_string()),
            Ok(()) => (true, "mapping goes on with the next image".to_string()),
            Err(message) => (false, message),
        };
        if let Err(error) = request.respond(SetBool::Response { success, message }) {
            log::debug!("a service reply was not sent: {error}");
        }
    }
}

/// Has a command carried out; `command` gets the channel for the reply.
async fn ask<R>(
    inbox: &Inbox,
    command: impl FnOnce(oneshot::Sender<R>) -> Command,
) -> Result<R, String> {
    let (reply, result) = oneshot::channel();
    let ending = || "the node is ending".to_string();
    if !inbox.put_command(command(reply)) {
        return Err(ending());
    }
    result.await.map_err(|_| ending())
}

/// Asks for the map to be published at the rate that the parameters say.
pub async fn publish_map_regularly(inbox: Arc<Inbox>, parameters: SharedParameters) {
    loop {
        let period = Duration::from_secs_f64(1.0 / parameters.current().map_rate);
        sleep(period).await;
        if !inbox.put_command_once(Command::PublishMap, |queued| {
            matches!(queued, Command::PublishMap)
        }) {
            return;
        }
    }
}

/// Publishes the diagnostics once a second.
pub async fn publish_diagnostics(
    publisher: Publisher<DiagnosticArray>,
    clock: Clock,
    health: Arc<Health>,
    inbox: Arc<Inbox>,
    parameters: SharedParameters,
    (node, image_topic): (String, String),
) {
    let started = Instant::now();
    let mut silent = false;
    let mut ticks = interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let state = health.snapshot();
        let context = diagnostics::Context {
            node: &node,
            image_topic: &image_topic,
            parameters: &parameters.current(),
            started,
            dropped: inbox.dropped(),
        };
        let silence = diagnostics::silence(&state, &context);
        if let Some(text) = &silence
            && !silent
        {
            log::warn!("{text}");
        }
        silent = silence.is_some();
        let report = diagnostics::report(clock.now(), &state, &context);
        if let Err(error) = publisher.publish(&report) {
            log::debug!("diagnostics were not published: {error}");
        }
    }
}
