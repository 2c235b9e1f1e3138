//! Declares the [`Parameters`] table as ROS parameters and takes what the command line and parameter files say.

use std::sync::{Arc, Mutex};

use r2r::{Parameter, ParameterValue, RosParams, indexmap::IndexMap};

use super::parameters::{ParameterError, Parameters};

/// Names that ROS itself gives to any node.
const ROS_PARAMETERS: &[&str] = &["use_sim_time", "start_type_description_service"];
const ROS_PARAMETER_PREFIXES: &[&str] = &["qos_overrides."];

#[derive(Debug, thiserror::Error)]
#[error("parameter {name} {reason}")]
pub struct DeclareError {
    name: String,
    reason: ParameterError,
}

/// The parameters of the node with what was given for them, and the names given that nobody knows.
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
            Err(ParameterError::Unknown) => {
                if !is_ros_parameter(name) {
                    unknown.push(name.clone());
                }
            }
            Err(reason) => {
                return Err(DeclareError {
                    name: name.clone(),
                    reason,
                });
            }
        }
    }
    Ok((parameters, unknown))
}

fn is_ros_parameter(name: &str) -> bool {
    ROS_PARAMETERS.contains(&name)
        || ROS_PARAMETER_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// What the parameter services of the node answer from.
pub fn served(parameters: &Parameters) -> Arc<Mutex<dyn RosParams + Send>> {
    Arc::new(Mutex::new(Served(parameters.clone())))
}

struct Served(Parameters);

impl Served {
    fn refuse(&self, name: &str) -> r2r::Error {
        let msg = match self.0.get(name) {
            Some(_) => "is read at the start: set it in the launch file or a parameter file and start again".into(),
            None => ParameterError::Unknown.to_string(),
        };
        r2r::Error::ParameterValueConv {
            name: name.into(),
            msg,
        }
    }
}

impl RosParams for Served {
    fn register_parameters(
        &mut self,
        _prefix: &str,
        _parameter: Option<Parameter>,
        declared: &mut IndexMap<String, Parameter>,
    ) -> r2r::Result<()> {
        for row in Parameters::table() {
            let value = self.0.get(row.name).unwrap_or(row.default);
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
            .get(name)
            .ok_or_else(|| r2r::Error::InvalidParameterName { name: name.into() })
    }

    fn set_parameter(&mut self, name: &str, _value: &ParameterValue) -> r2r::Result<()> {
        Err(self.refuse(name))
    }

    fn check_parameter(&self, name: &str, _value: &ParameterValue) -> r2r::Result<()> {
        Err(self.refuse(name))
    }
}
