use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use prost::Message;

use super::proto::{
    AttributeProto, AttributeType, DataType, DimensionProto, DimensionValue, GraphProto,
    ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto, TensorTypeProto,
    TypeProto, ValueInfoProto,
};
use super::weights::WeightFile;

/// The first opset with `TensorScatter`.
const ONNX_OPSET: i64 = 24;
/// The intermediate representation that came with that opset.
const IR_VERSION: i64 = 11;
pub(super) const MICROSOFT_DOMAIN: &str = "com.microsoft";

/// A tensor in the graph, known by its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Value(Rc<str>);

impl Value {
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// Element types of graph inputs and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    F32,
    U8,
    I64,
}

impl From<ElementType> for DataType {
    fn from(element: ElementType) -> Self {
        match element {
            ElementType::F32 => DataType::Float,
            ElementType::U8 => DataType::Uint8,
            ElementType::I64 => DataType::Int64,
        }
    }
}

/// One dimension of a graph input or output: fixed, or named and known when the graph is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    Fixed(usize),
    Symbolic(&'static str),
}

impl From<usize> for Dim {
    fn from(size: usize) -> Self {
        Dim::Fixed(size)
    }
}

/// An attribute of a node.
pub enum Attribute<'a> {
    Int(i64),
    Float(f32),
    Ints(&'a [i64]),
    Text(&'a str),
}

/// Collects one graph. Nodes are appended in the order of execution, so the result is always topologically sorted.
pub struct GraphBuilder<'w, 'p> {
    weights: &'w mut WeightFile<'p>,
    graph: GraphProto,
    initializers: HashMap<String, Value>,
    renamed: HashMap<Value, String>,
    counter: usize,
}

impl<'w, 'p> GraphBuilder<'w, 'p> {
    pub fn new(name: &str, weights: &'w mut WeightFile<'p>) -> Self {
        Self {
            weights,
            graph: GraphProto {
                name: name.into(),
                ..Default::default()
            },
            initializers: HashMap::new(),
            renamed: HashMap::new(),
            counter: 0,
        }
    }

    /// Declares a graph input.
    pub fn input(&mut self, name: &str, element: ElementType, shape: &[Dim]) -> Value {
        self.graph.input.push(value_info(name, element, shape));
        Value(name.into())
    }

    /// Makes `value` a graph output called `name`.
    pub fn output(&mut self, value: &Value, name: &str, element: ElementType, shape: &[Dim]) {
        self.graph.output.push(value_info(name, element, shape));
        self.renamed.insert(value.clone(), name.to_owned());
    }

    /// Gives `value` a name of its own, by which a profile or a test finds it.
    pub fn label(&mut self, value: &Value, name: impl Into<String>) {
        self.renamed
            .entry(value.clone())
            .or_insert_with(|| name.into());
    }

    /// A float32 initializer (row-major). The name must be new in this graph.
    pub fn weight(&mut self, name: &str, shape: &[usize], values: &[f32]) -> io::Result<Value> {
        let tensor = self.weights.store(name, shape, values)?;
        Ok(self.initializer(tensor))
    }

    /// A one-dimensional int64 initializer, shared between all places that need the same numbers.
    pub fn ints(&mut self, values: &[i64]) -> Value {
        let numbers: Vec<String> = values.iter().map(i64::to_string).collect();
        let name = format!("ints_{}", numbers.join("_"));
        if let Some(value) = self.initializers.get(&name) {
            return value.clone();
        }
        self.initializer(TensorProto {
            dims: vec![values.len() as i64],
            data_type: DataType::Int64 as i32,
            name,
            raw_data: Some(values.iter().flat_map(|v| v.to_le_bytes()).collect()),
            ..Default::default()
        })
    }

    /// A scalar int64 initializer, as `Gather` takes it to drop the axis it picks from.
    pub fn scalar_int(&mut self, value: i64) -> Value {
        let name = format!("int_{value}");
        if let Some(value) = self.initializers.get(&name) {
            return value.clone();
        }
        self.initializer(TensorProto {
            data_type: DataType::Int64 as i32,
            name,
            raw_data: Some(value.to_le_bytes().to_vec()),
            ..Default::default()
        })
    }

    /// An optional input that is not given.
    pub(super) fn absent(&self) -> Value {
        Value("".into())
    }

    fn initializer(&mut self, tensor: TensorProto) -> Value {
        let value = Value(tensor.name.as_str().into());
        self.initializers.insert(tensor.name.clone(), value.clone());
        self.graph.initializer.push(tensor);
        value
    }

    /// Appends a node of the standard domain with one output.
    pub fn node(
        &mut self,
        operator: &str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute)],
    ) -> Value {
        self.node_in("", operator, inputs, attributes)
    }

    pub(super) fn node_in(
        &mut self,
        domain: &str,
        operator: &str,
        inputs: &[&Value],
        attributes: &[(&str, Attribute)],
    ) -> Value {
        self.counter += 1;
        let output = Value(format!("{operator}_{}", self.counter).into());
        self.graph.node.push(NodeProto {
            input: inputs.iter().map(|value| value.name().to_owned()).collect(),
            output: vec![output.name().to_owned()],
            name: output.name().to_owned(),
            op_type: operator.into(),
            domain: domain.into(),
            attribute: attributes
                .iter()
                .map(|(name, value)| attribute(name, value))
                .collect(),
        });
        output
    }

    /// The serialised model.
    pub fn finish(mut self) -> Vec<u8> {
        let renamed: HashMap<&str, &String> = self
            .renamed
            .iter()
            .map(|(value, name)| (value.name(), name))
            .collect();
        for node in &mut self.graph.node {
            for name in node.input.iter_mut().chain(&mut node.output) {
                if let Some(new) = renamed.get(name.as_str()) {
                    *name = (*new).clone();
                }
            }
        }
        let opset = |domain: &str, version| OperatorSetIdProto {
            domain: domain.into(),
            version,
        };
        ModelProto {
            ir_version: IR_VERSION,
            producer_name: env!("CARGO_PKG_NAME").into(),
            producer_version: env!("CARGO_PKG_VERSION").into(),
            graph: Some(self.graph),
            opset_import: vec![opset("", ONNX_OPSET), opset(MICROSOFT_DOMAIN, 1)],
        }
        .encode_to_vec()
    }
}

fn value_info(name: &str, element: ElementType, shape: &[Dim]) -> ValueInfoProto {
    let dim = shape
        .iter()
        .map(|dim| {
            let value = match *dim {
                Dim::Fixed(size) => DimensionValue::DimValue(size as i64),
                Dim::Symbolic(name) => DimensionValue::DimParam(name.into()),
            };
            DimensionProto { value: Some(value) }
        })
        .collect();
    let tensor_type = TensorTypeProto {
        elem_type: DataType::from(element) as i32,
        shape: Some(TensorShapeProto { dim }),
    };
    ValueInfoProto {
        name: name.into(),
        r#type: Some(TypeProto {
            tensor_type: Some(tensor_type),
        }),
    }
}

fn attribute(name: &str, value: &Attribute) -> AttributeProto {
    let mut proto = AttributeProto {
        name: name.into(),
        ..Default::default()
    };
    let kind = match *value {
        Attribute::Int(i) => {
            proto.i = Some(i);
            AttributeType::Int
        }
        Attribute::Float(f) => {
            proto.f = Some(f);
            AttributeType::Float
        }
        Attribute::Ints(ints) => {
            proto.ints = ints.to_vec();
            AttributeType::Ints
        }
        Attribute::Text(text) => {
            proto.s = Some(text.as_bytes().to_vec());
            AttributeType::String
        }
    };
    proto.r#type = kind as i32;
    proto
}
