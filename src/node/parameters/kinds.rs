//! Types, ranges and texts of parameter values.

use r2r::ParameterValue;

/// What a parameter's value may be, beyond its type.
#[derive(Debug, Clone, Copy)]
pub enum Range {
    Any,
    NotEmpty,
    OneOf(&'static [&'static str]),
    /// Some of these, with commas between; or none.
    SomeOf(&'static [&'static str]),
    Integers(i64, i64),
    Numbers(f64, f64),
}

#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ParameterError {
    #[error("there is no parameter of this name{}", did_you_mean(.nearest))]
    Unknown { nearest: Option<&'static str> },
    #[error("is read at the start: set it in the launch file or a parameter file and start again")]
    Fixed,
    #[error("is {found}, but must be {expected}")]
    Type {
        found: &'static str,
        expected: &'static str,
    },
    #[error("is {found}, but must be {allowed}")]
    Range { found: String, allowed: String },
}

fn did_you_mean(nearest: &Option<&'static str>) -> String {
    nearest.map_or_else(
        || ", see config/mapping.yaml for all".into(),
        |name| format!(": a typing error for {name}?"),
    )
}

/// A Rust type that a ROS parameter can have.
pub trait ParameterType: Sized {
    const NAME: &'static str;
    fn from_ros(value: &ParameterValue) -> Option<Self>;
    fn to_ros(&self) -> ParameterValue;
}

impl ParameterType for bool {
    const NAME: &'static str = "bool";
    fn from_ros(value: &ParameterValue) -> Option<Self> {
        match value {
            ParameterValue::Bool(value) => Some(*value),
            _ => None,
        }
    }
    fn to_ros(&self) -> ParameterValue {
        ParameterValue::Bool(*self)
    }
}

impl ParameterType for i64 {
    const NAME: &'static str = "integer";
    fn from_ros(value: &ParameterValue) -> Option<Self> {
        match value {
            ParameterValue::Integer(value) => Some(*value),
            _ => None,
        }
    }
    fn to_ros(&self) -> ParameterValue {
        ParameterValue::Integer(*self)
    }
}

impl ParameterType for f64 {
    const NAME: &'static str = "double";
    /// Takes integers too: whoever writes `2` for `2.0` means the same number.
    fn from_ros(value: &ParameterValue) -> Option<Self> {
        match value {
            ParameterValue::Double(value) => Some(*value),
            ParameterValue::Integer(value) => Some(*value as f64),
            _ => None,
        }
    }
    fn to_ros(&self) -> ParameterValue {
        ParameterValue::Double(*self)
    }
}

impl ParameterType for String {
    const NAME: &'static str = "string";
    fn from_ros(value: &ParameterValue) -> Option<Self> {
        match value {
            ParameterValue::String(value) => Some(value.clone()),
            _ => None,
        }
    }
    fn to_ros(&self) -> ParameterValue {
        ParameterValue::String(self.clone())
    }
}

impl ParameterType for [i64; 4] {
    const NAME: &'static str = "array of 4 integers";
    fn from_ros(value: &ParameterValue) -> Option<Self> {
        match value {
            ParameterValue::IntegerArray(values) => values.as_slice().try_into().ok(),
            _ => None,
        }
    }
    fn to_ros(&self) -> ParameterValue {
        ParameterValue::IntegerArray(self.to_vec())
    }
}

impl ParameterType for [f64; 6] {
    const NAME: &'static str = "array of 6 doubles";
    fn from_ros(value: &ParameterValue) -> Option<Self> {
        match value {
            ParameterValue::DoubleArray(values) => values.as_slice().try_into().ok(),
            ParameterValue::IntegerArray(values) => {
                let values: Vec<f64> = values.iter().map(|value| *value as f64).collect();
                values.as_slice().try_into().ok()
            }
            _ => None,
        }
    }
    fn to_ros(&self) -> ParameterValue {
        ParameterValue::DoubleArray(self.to_vec())
    }
}

/// The words of a list with commas.
pub fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
}

pub fn type_of(value: &ParameterValue) -> &'static str {
    match value {
        ParameterValue::NotSet => "not set",
        ParameterValue::Bool(_) => "a bool",
        ParameterValue::Integer(_) => "an integer",
        ParameterValue::Double(_) => "a double",
        ParameterValue::String(_) => "a string",
        _ => "an array of another type or length",
    }
}

pub fn check_range(value: &ParameterValue, range: Range) -> Result<(), ParameterError> {
    let inside = match (value, range) {
        (ParameterValue::Integer(value), Range::Integers(low, high)) => {
            (low..=high).contains(value)
        }
        (ParameterValue::IntegerArray(values), Range::Integers(low, high)) => {
            values.iter().all(|value| (low..=high).contains(value))
        }
        (ParameterValue::Double(value), Range::Numbers(low, high)) => (low..=high).contains(value),
        (ParameterValue::DoubleArray(values), Range::Numbers(low, high)) => {
            values.iter().all(|value| (low..=high).contains(value))
        }
        (ParameterValue::String(value), Range::OneOf(allowed)) => allowed.contains(&value.as_str()),
        (ParameterValue::String(value), Range::SomeOf(allowed)) => {
            words(value).all(|word| allowed.contains(&word))
        }
        (ParameterValue::String(value), Range::NotEmpty) => !value.trim().is_empty(),
        _ => true,
    };
    if inside {
        return Ok(());
    }
    Err(ParameterError::Range {
        found: show(value),
        allowed: range.to_string(),
    })
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Range::Any => Ok(()),
            Range::NotEmpty => f.write_str("not empty"),
            Range::OneOf(allowed) => f.write_str(&allowed.join(" | ")),
            Range::SomeOf(allowed) => write!(f, "some of {}", allowed.join(", ")),
            Range::Integers(low, high) => write!(f, "{low} to {high}"),
            Range::Numbers(low, high) => write!(f, "{low} to {high}"),
        }
    }
}

/// A value as YAML writes it.
pub fn show(value: &ParameterValue) -> String {
    match value {
        ParameterValue::Bool(value) => value.to_string(),
        ParameterValue::Integer(value) => value.to_string(),
        ParameterValue::Double(value) => format!("{value:?}"),
        ParameterValue::String(value) => format!("{value:?}"),
        ParameterValue::DoubleArray(values) => format!("{values:?}"),
        ParameterValue::IntegerArray(values) => format!("{values:?}"),
        _ => String::new(),
    }
}
