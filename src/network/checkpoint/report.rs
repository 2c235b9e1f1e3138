//! Whether a source of tensors fits a configuration.

use std::collections::BTreeSet;
use std::fmt;

use super::TensorSource;
use crate::network::config::{MASK_TOKEN, NetworkConfig};

/// Differences between the tensors a network needs and those a source has, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TensorReport {
    /// Needed and not there.
    pub missing: Vec<String>,
    /// There and not needed; harmless.
    pub unexpected: Vec<String>,
    /// Name, found shape, expected shape.
    pub wrong_shape: Vec<(String, Vec<usize>, Vec<usize>)>,
}

impl TensorReport {
    pub fn new(source: &dyn TensorSource, config: &NetworkConfig) -> Self {
        let mut report = Self::default();
        let mut needed = BTreeSet::from([MASK_TOKEN.to_owned()]);
        for (name, expected) in config.expected_tensors() {
            match source.shape(&name) {
                None => report.missing.push(name.clone()),
                Some(found) if found != expected => {
                    let entry = (name.clone(), found.to_vec(), expected);
                    report.wrong_shape.push(entry);
                }
                Some(_) => {}
            }
            needed.insert(name);
        }
        report.unexpected = source
            .names()
            .into_iter()
            .filter(|name| !needed.contains(*name))
            .map(str::to_owned)
            .collect();
        report.missing.sort_unstable();
        report.unexpected.sort_unstable();
        report.wrong_shape.sort_unstable();
        report
    }

    /// Whether the network can be built from the source; unexpected tensors do not matter.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.wrong_shape.is_empty()
    }
}

/// Most names of one kind that a message lists.
const LISTED: usize = 10;

impl fmt::Display for TensorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrong: Vec<String> = self
            .wrong_shape
            .iter()
            .map(|(name, found, expected)| {
                format!("{name}: found {found:?}, expected {expected:?}")
            })
            .collect();
        let mut lines = Vec::new();
        for (kind, names) in [
            ("missing", &self.missing),
            ("wrong shape", &wrong),
            ("unexpected", &self.unexpected),
        ] {
            lines.extend((!names.is_empty()).then(|| listed(kind, names)));
        }
        f.write_str(&lines.join("; "))
    }
}

fn listed(kind: &str, names: &[String]) -> String {
    let shown = names.get(..LISTED).unwrap_or(names);
    let rest = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{kind} ({}): {}{rest}", names.len(), shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::checkpoint::CheckpointError;

    /// A source with one tensor renamed, one reshaped and the unused mask token added.
    struct Altered(Vec<(String, Vec<usize>)>);

    impl Altered {
        fn new(config: &NetworkConfig) -> Self {
            let mut tensors = config.expected_tensors();
            for (name, shape) in &mut tensors {
                if name == "aggregator.scale_token" {
                    *name = "scale".to_owned();
                } else if name == "camera_head.pose_branch.fc2.bias" {
                    *shape = vec![8];
                }
            }
            tensors.push((MASK_TOKEN.to_owned(), vec![1, config.embed_dim]));
            Self(tensors)
        }
    }

    impl TensorSource for Altered {
        fn shape(&self, name: &str) -> Option<&[usize]> {
            let found = self.0.iter().find(|(other, _)| other == name);
            found.map(|(_, shape)| shape.as_slice())
        }
        fn names(&self) -> Vec<&str> {
            self.0.iter().map(|(name, _)| name.as_str()).collect()
        }
        fn read_f32(&self, name: &str) -> Result<Vec<f32>, CheckpointError> {
            Err(CheckpointError::NoTensor(name.to_owned()))
        }
    }

    #[test]
    fn each_kind_of_difference_is_named() {
        let config = NetworkConfig::official();
        let report = TensorReport::new(&Altered::new(&config), &config);
        assert_eq!(report.missing, ["aggregator.scale_token"]);
        assert_eq!(report.unexpected, ["scale"]);
        let reshaped = "camera_head.pose_branch.fc2.bias".to_owned();
        assert_eq!(report.wrong_shape, [(reshaped, vec![8], vec![9])]);
        assert!(!report.is_complete());
        assert_eq!(
            report.to_string(),
            "missing (1): aggregator.scale_token; \
             wrong shape (1): camera_head.pose_branch.fc2.bias: found [8], expected [9]; \
             unexpected (1): scale"
        );
    }

    #[test]
    fn long_lists_are_cut_short() {
        let report = TensorReport {
            missing: (0..25).map(|i| i.to_string()).collect(),
            ..TensorReport::default()
        };
        let text = report.to_string();
        assert!(text.ends_with(", 9 and 15 more"), "{text}");
    }
}
