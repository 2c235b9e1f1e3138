//! Declares the [`Parameters`] table as ROS parameters and takes what the command line and parameter files say.

use std::sync::{Arc, Mutex};

use r2r::{Parameter, ParameterValue, RosParams, indexmap::IndexMap};

use super::parameters::{Conflict, ParameterError, Parameters};

/// Names that ROS itself gives to any node.
const ROS_PARAMETERS: &[&str] = &["use_sim_time", "start_type_description_service"];
const ROS_PARAMETER_PREFIXES: &[&str] = &["qos_overrides."];

#[derive(Debug, thiserror::Error)]
pub enum DeclareError {
    #[error("parameter {name} {reason}")]
    Value {
        name: String,
        reason: ParameterError,
    },
    #[error(transparent)]
    Conflict(#[from] Conflict),
}

/// The parameters of the node with what was given for them, and sentences about names that nobody knows.
///
/// # Errors
/// Values of the wrong type, outside their range, or that contradict each other.
pub fn read(node: &r2r::Node) -> Result<(Parameters, Vec<String>), DeclareError> {
    let mut parameters = Parameters::default();
    let mut unknown = Vec::new();
    let given = node
        .params
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    for (name, parameter) in given.iter() {
        match parameters.set(name, &parameter.value) {
            Ok(()) => {}
            Err(reason @ ParameterError::Unknown { .. }) => {
                if !is_ros_parameter(name) {
                    unknown.push(format!("parameter {name} is not known: {reason}"));
                }
            }
            Err(reason) => {
                return Err(DeclareError::Value {
                    name: name.clone(),
                    reason,
                });
            }
        }
    }
    parameters.check()?;
    Ok((parameters, unknown))
}

fn is_ros_parameter(name: &str) -> bool {
    ROS_PARAMETERS.contains(&name)
        || ROS_PARAMETER_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// The parameters as they are now. Whoever works with them takes a copy, so that they do not change underneath.
#[derive(Debug, Clone)]
pub struct SharedParameters(Arc<Mutex<Arc<Parameters>>>);

impl SharedParameters {
    pub fn new(parameters: Parameters) -> SharedParameters {
        SharedParameters(Arc::new(Mutex::new(Arc::new(parameters))))
    }

    pub fn current(&self) -> Arc<Parameters> {
        self.lock().clone()
    }

    /// What the parameter services of the node answer from.
    pub fn served(&self) -> Arc<Mutex<dyn RosParams + Send>> {
        Arc::new(Mutex::new(Served(self.clone())))
    }

    fn changed(&self, name: &str, value: &ParameterValue) -> Result<Parameters, ParameterError> {
        let mut parameters = Parameters::clone(&self.current());
        parameters.change(name, value)?;
        Ok(parameters)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<Parameters>> {
        // It holds one or the other whole set.
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

struct Served(SharedParameters);

fn refusal(name: &str, reason: ParameterError) -> r2r::Error {
    r2r::Error::ParameterValueConv {
        name: name.into(),
        msg: reason.to_string(),
    }
}

impl RosParams for Served {
    fn register_parameters(
        &mut self,
        _prefix: &str,
        _parameter: Option<Parameter>,
        declared: &mut IndexMap<String, Parameter>,
    ) -> r2r::Result<()> {
        let current = self.0.current();
        for row in Parameters::table() {
            let value = current.get(row.name).unwrap_or(row.default);
            declared.insert(
                row.name.into(),
                Parameter {
                    value,
                    description: row.description,
                },
            );
        }
        Ok(())
    }

    fn get_parameter(&mut self, name: &str) -> r2r::Result<ParameterValue> {
        self.0
            .current()
            .get(name)
            .ok_or_else(|| r2r::Error::InvalidParameterName { name: name.into() })
    }

    fn set_parameter(&mut self, name: &str, value: &ParameterValue) -> r2r::Result<()> {
        if is_ros_parameter(name) {
            return Err(refusal(name, ParameterError::Fixed));
        }
        let parameters = self
            .0
            .changed(name, value)
            .map_err(|reason| refusal(name, reason))?;
        log::info!("parameter {name} is set anew");
        *self.0.lock() = Arc::new(parameters);
        Ok(())
    }

    fn check_parameter(&self, name: &str, value: &ParameterValue) -> r2r::Result<()> {
        self.0
            .changed(name, value)
            .map(drop)
            .map_err(|reason| refusal(name, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_change_changes_and_everything_else_is_refused_with_a_reason() {
        let shared = SharedParameters::new(Parameters::default());
        let mut served = Served(shared.clone());
        let before = shared.current();
        served
            .set_parameter("conf_threshold", &ParameterValue::Integer(3))
            .unwrap();
        assert_eq!(shared.current().conf_threshold, 3.0);
        assert_eq!(before.conf_threshold, 1.5, "a copy stays as it was");

        for (name, value, told) in [
            ("conf_threshold", ParameterValue::Double(-1.0), "0 to 1000"),
            (
                "conf_threshold",
                ParameterValue::Bool(true),
                "must be double",
            ),
            (
                "image_topic",
                ParameterValue::String("/x".into()),
                "start again",
            ),
            (
                "conf_treshold",
                ParameterValue::Double(1.0),
                "conf_threshold",
            ),
            ("use_sim_time", ParameterValue::Bool(true), "start again"),
        ] {
            let error = served.set_parameter(name, &value).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(told), "{error}");
            assert!(served.check_parameter(name, &value).is_err(), "{name}");
        }
        assert_eq!(shared.current().conf_threshold, 3.0);
        // Set to what it is: a tool that sets all parameters of a file must not fail.
        served
            .set_parameter("image_topic", &ParameterValue::String("image".into()))
            .unwrap();
    }
}
