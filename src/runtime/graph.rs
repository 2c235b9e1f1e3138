use std::ffi::CString;
use std::path::Path;

use ort::AsPointer;
use ort::session::builder::GraphOptimizationLevel;
use ort::session::{IoBinding, Session};
use ort::value::{DynValue, DynValueRef, TensorRef, TensorRefMut};

use super::{Library, Provider, RuntimeError, RuntimeOptions};

/// One tensor of a run, in memory that the caller owns. Shapes are row-major; lengths must match them.
pub enum Binding<'a> {
    F32 {
        name: &'a str,
        shape: &'a [usize],
        data: &'a [f32],
    },
    U8 {
        name: &'a str,
        shape: &'a [usize],
        data: &'a [u8],
    },
    I64 {
        name: &'a str,
        shape: &'a [usize],
        data: &'a [i64],
    },
    Output {
        name: &'a str,
        shape: &'a [usize],
        data: &'a mut [f32],
    },
    /// An input that the graph continues in place as the output `output`.
    InPlace {
        input: &'a str,
        output: &'a str,
        shape: &'a [usize],
        data: &'a mut [f32],
    },
}

/// A graph that is ready to run.
#[derive(Debug)]
pub struct Graph {
    session: Session,
    binding: IoBinding,
    provider: Provider,
}

impl Graph {
    /// Loads a graph; its external weights are mapped from their file.
    pub fn load(
        library: &Library,
        path: &Path,
        options: &RuntimeOptions,
    ) -> Result<Self, RuntimeError> {
        let provider = options.provider.resolve()?;
        let mut builder = Session::builder(library.environment())?
            .with_optimization_level(GraphOptimizationLevel::All)
            .map_err(ort::Error::from)?
            .with_intra_threads(options.threads)
            .map_err(ort::Error::from)?
            // The attended rows change from call to call: a plan kept for every shape would be memory that grows.
            .with_memory_pattern(false)
            .map_err(ort::Error::from)?
            // Between frames the cores belong to the rest of the robot.
            .with_config_entry("session.force_spinning_stop", "1")
            .map_err(ort::Error::from)?;
        let session = builder.commit_from_file(path)?;
        let binding = session.create_binding()?;
        Ok(Self {
            session,
            binding,
            provider,
        })
    }

    /// The provider that runs this graph.
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// Shape of an input; dimensions that are not fixed are -1.
    pub fn input_shape(&self, name: &str) -> Option<&[i64]> {
        let input = self
            .session
            .inputs()
            .iter()
            .find(|input| input.name() == name)?;
        input.dtype().tensor_shape().map(|shape| &**shape)
    }

    /// Runs the graph once. All inputs and outputs of the graph must be bound; nothing is copied.
    pub fn run(&mut self, tensors: &mut [Binding]) -> Result<(), RuntimeError> {
        let result = self.bind_and_run(tensors);
        self.binding.clear();
        result
    }

    fn bind_and_run(&mut self, tensors: &mut [Binding]) -> Result<(), RuntimeError> {
        // Every value points into a slice that `tensors` borrows until this function's caller has cleared the binding,
        // mutably where the graph may write; ort has checked the length of the slice against the shape.
        let mut values: Vec<DynValueRef> = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            match tensor {
                Binding::F32 { name, shape, data } => {
                    let value = TensorRef::from_array_view((*shape, &**data))?.into_dyn();
                    self.bind(Side::Input, name, &value)?;
                    values.push(value);
                }
                Binding::U8 { name, shape, data } => {
                    let value = TensorRef::from_array_view((*shape, &**data))?.into_dyn();
                    self.bind(Side::Input, name, &value)?;
                    values.push(value);
                }
                Binding::I64 { name, shape, data } => {
                    let value = TensorRef::from_array_view((*shape, &**data))?.into_dyn();
                    self.bind(Side::Input, name, &value)?;
                    values.push(value);
                }
                Binding::Output { name, shape, data } => {
                    let value =
                        TensorRefMut::from_array_view_mut((*shape, &mut **data))?.into_dyn();
                    self.bind(Side::Output, name, &value)?;
                    values.push(value.into());
                }
                Binding::InPlace {
                    input,
                    output,
                    shape,
                    data,
                } => {
                    let value =
                        TensorRefMut::from_array_view_mut((*shape, &mut **data))?.into_dyn();
                    self.bind(Side::Input, input, &value)?;
                    self.bind(Side::Output, output, &value)?;
                    values.push(value.into());
                }
            }
        }
        self.session.run_binding(&self.binding)?;
        Ok(())
    }

    /// ort's own `bind_input` copies borrowed tensors and its `bind_output` refuses them, so this calls ONNX Runtime.
    fn bind(&mut self, side: Side, name: &str, value: &DynValue) -> Result<(), RuntimeError> {
        let name = CString::new(name).map_err(|error| ort::Error::new(error.to_string()))?;
        let api = ort::api();
        // SAFETY: binding, name and value are valid during the call, and ONNX Runtime keeps its own reference to the
        // value's descriptor. The memory behind the value outlives the binding: see `run` and `bind_and_run`.
        unsafe {
            let status = match side {
                Side::Input => (api.BindInput)(self.binding.ptr_mut(), name.as_ptr(), value.ptr()),
                Side::Output => {
                    (api.BindOutput)(self.binding.ptr_mut(), name.as_ptr(), value.ptr())
                }
            };
            ort::Error::result_from_status(status)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}
