//! The mapping node as a camera's player sees it: its diagnostics and its service.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::StreamExt;
use r2r::QosProfile;
use r2r::diagnostic_msgs::msg::DiagnosticArray;
use r2r::std_srvs::srv::Trigger;

use super::PATIENCE;

/// How often the node reports.
const REPORT_PERIOD: Duration = Duration::from_secs(1);

pub type Figures = BTreeMap<String, String>;

pub struct MappingNode {
    figures: Arc<Mutex<Figures>>,
    save: r2r::Client<Trigger::Service>,
    available: Pin<Box<dyn Future<Output = r2r::Result<()>> + Send>>,
}

impl MappingNode {
    /// Listens to the diagnostics of the node with this full name, which need not be there yet.
    pub fn watch(node: &mut r2r::Node, name: &str) -> r2r::Result<Self> {
        let reports = node.subscribe::<DiagnosticArray>("/diagnostics", QosProfile::default())?;
        let service = format!("{}/save_map", name.trim_end_matches('/'));
        let save =
            node.create_client::<Trigger::Service>(&service, QosProfile::services_default())?;
        let available = Box::pin(r2r::Node::is_available(&save)?);
        let figures = Arc::default();
        tokio::spawn(collect(reports, name.to_owned(), Arc::clone(&figures)));
        Ok(Self {
            figures,
            save,
            available,
        })
    }

    /// # Errors
    /// A node that has not loaded its model in ten minutes.
    pub async fn wait_until_loaded(&self) -> anyhow::Result<()> {
        self.wait_for("the node to load its model", |figures| {
            figures
                .get("state")
                .is_some_and(|state| state != "starting")
        })
        .await
    }

    /// Waits until the node is done with the `sent` images, has it save the map and returns its last figures, with the
    /// folder of the map under `map`.
    ///
    /// # Errors
    /// A node that does not come to its end in ten minutes, or cannot save.
    pub async fn finish(self, sent: u64) -> anyhow::Result<Figures> {
        // Only reports made after the last image has arrived say how it ended.
        tokio::time::sleep(2 * REPORT_PERIOD).await;
        lock(&self.figures).clear();
        self.wait_for("the node to map the last images", |figures| {
            is_idle(figures, sent)
        })
        .await?;
        self.available.await?;
        let answer = self.save.request(&Trigger::Request {})?.await?;
        if !answer.success {
            bail!("the map was not saved: {}", answer.message);
        }
        let mut figures = lock(&self.figures).clone();
        figures.insert("map".into(), answer.message);
        Ok(figures)
    }

    async fn wait_for(&self, what: &str, done: impl Fn(&Figures) -> bool) -> anyhow::Result<()> {
        let waiting = async {
            while !done(&lock(&self.figures)) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .with_context(|| format!("waited too long for {what}"))
    }
}

fn lock(figures: &Mutex<Figures>) -> MutexGuard<'_, Figures> {
    // Figures are replaced whole.
    figures
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Keeps the newest figures of the node named `node`.
async fn collect(
    mut reports: impl StreamExt<Item = DiagnosticArray> + Unpin,
    node: String,
    figures: Arc<Mutex<Figures>>,
) {
    let name = format!("{}: mapping", node.trim_matches('/'));
    while let Some(report) = reports.next().await {
        for status in report.status {
            if status.name == name {
                let pairs = status.values.into_iter();
                *lock(&figures) = pairs.map(|pair| (pair.key, pair.value)).collect();
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_idle_when_every_image_has_come_to_its_end() {
        let figures = |received: u64, mapped: u64, state: &str| {
            Figures::from([
                ("frames in".into(), received.to_string()),
                ("frames mapped".into(), mapped.to_string()),
                ("frames refused".into(), "2".into()),
                ("state".into(), state.into()),
            ])
        };
        assert!(is_idle(&figures(100, 98, "mapping"), 100));
        assert!(!is_idle(&figures(100, 97, "mapping"), 100));
        assert!(is_idle(&figures(95, 93, "mapping"), 100), "five were lost");
        assert!(
            !is_idle(&figures(60, 58, "mapping"), 100),
            "more are to come"
        );
        assert!(is_idle(&figures(3, 0, "initialising 3/8"), 3));
        assert!(!is_idle(&Figures::new(), 1));
    }
}
