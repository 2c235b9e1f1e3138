use std::fmt;
use std::str::FromStr;

use ort::ep::{CUDA, ExecutionProvider, TensorRT};

use super::RuntimeError;

/// Where graphs run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provider {
    /// The best provider that this version can drive on this machine.
    #[default]
    Auto,
    Cpu,
    Cuda,
    TensorRt,
}

impl Provider {
    pub const NAMES: [&'static str; 4] = ["auto", "cpu", "cuda", "tensorrt"];

    /// The provider that will really run, or why the wish cannot be met. Only [`Provider::Auto`] ever settles for less
    /// than was asked, and says so in the log.
    pub fn resolve(self) -> Result<Self, RuntimeError> {
        match self {
            Provider::Cpu => Ok(Provider::Cpu),
            Provider::Auto => {
                log::info!(
                    "provider auto takes the CPU: {}",
                    accelerator_gap(Provider::Cuda)
                );
                Ok(Provider::Cpu)
            }
            Provider::Cuda | Provider::TensorRt => Err(RuntimeError::Provider {
                provider: self,
                reason: accelerator_gap(self),
            }),
        }
    }
}

/// What stands between this machine and an accelerator.
fn accelerator_gap(provider: Provider) -> String {
    let available = match provider {
        Provider::TensorRt => TensorRT::is_available(),
        _ => CUDA::is_available(),
    };
    match available {
        Ok(true) => "exported graphs keep their cache in host memory, which only the CPU provider can attend in place".into(),
        Ok(false) => format!("this ONNX Runtime library was built without the {provider} provider (the PyPI package onnxruntime-gpu has it)"),
        Err(error) => format!("ONNX Runtime does not list its providers: {error}"),
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ALL: [Provider; 4] = [
            Provider::Auto,
            Provider::Cpu,
            Provider::Cuda,
            Provider::TensorRt,
        ];
        ALL.into_iter()
            .find(|provider| provider.to_string() == text)
            .ok_or_else(|| {
                format!(
                    "unknown provider `{text}`: use one of {}",
                    Self::NAMES.join(", ")
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_agree() {
        for name in Provider::NAMES {
            assert_eq!(name.parse::<Provider>().unwrap().to_string(), name);
        }
        assert!("gpu".parse::<Provider>().unwrap_err().contains("tensorrt"));
    }
}
