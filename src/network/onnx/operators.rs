//! One method per ONNX operator that the network uses, named as in the operator's documentation.

use super::builder::{Attribute, GraphBuilder, MICROSOFT_DOMAIN, Value};

/// Window of a two-dimensional convolution; kernel size comes from the weight.
#[derive(Clone, Copy)]
pub struct ConvShape {
    pub stride: i64,
    pub padding: i64,
}

impl ConvShape {
    /// Stride 1, and for an odd kernel of size `kernel` the padding that keeps the image size.
    pub const fn same(kernel: i64) -> Self {
        Self {
            stride: 1,
            padding: kernel / 2,
        }
    }
}

impl GraphBuilder<'_, '_> {
    pub fn add(&mut self, a: &Value, b: &Value) -> Value {
        self.node("Add", &[a, b], &[])
    }

    pub fn sub(&mut self, a: &Value, b: &Value) -> Value {
        self.node("Sub", &[a, b], &[])
    }

    pub fn mul(&mut self, a: &Value, b: &Value) -> Value {
        self.node("Mul", &[a, b], &[])
    }

    pub fn relu(&mut self, x: &Value) -> Value {
        self.node("Relu", &[x], &[])
    }

    pub fn exp(&mut self, x: &Value) -> Value {
        self.node("Exp", &[x], &[])
    }

    /// x · sigmoid(x)
    pub fn silu(&mut self, x: &Value) -> Value {
        let gate = self.node("Sigmoid", &[x], &[]);
        self.mul(x, &gate)
    }

    /// The exact, error-function form.
    pub fn gelu(&mut self, x: &Value) -> Value {
        self.node("Gelu", &[x], &[("approximate", Attribute::Text("none"))])
    }

    /// x · weightᵀ + bias; `x` [m, in], `weight` [out, in], `bias` broadcastable to [m, out].
    pub fn gemm(&mut self, x: &Value, weight: &Value, bias: &Value) -> Value {
        self.node("Gemm", &[x, weight, bias], &[("transB", Attribute::Int(1))])
    }

    /// Over the last axis.
    pub fn layer_norm(
        &mut self,
        x: &Value,
        scale: &Value,
        bias: Option<&Value>,
        epsilon: f32,
    ) -> Value {
        let mut inputs = vec![x, scale];
        inputs.extend(bias);
        self.node(
            "LayerNormalization",
            &inputs,
            &[
                ("axis", Attribute::Int(-1)),
                ("epsilon", Attribute::Float(epsilon)),
            ],
        )
    }

    /// -1 takes what is left, 0 keeps the dimension of `x`.
    pub fn reshape(&mut self, x: &Value, shape: &[i64]) -> Value {
        let shape = self.ints(shape);
        self.node("Reshape", &[x, &shape], &[])
    }

    pub fn transpose(&mut self, x: &Value, permutation: &[i64]) -> Value {
        self.node("Transpose", &[x], &[("perm", Attribute::Ints(permutation))])
    }

    pub fn concat(&mut self, values: &[&Value], axis: i64) -> Value {
        self.node("Concat", values, &[("axis", Attribute::Int(axis))])
    }

    /// x[start..end] along `axis`.
    pub fn slice(&mut self, x: &Value, axis: i64, start: i64, end: i64) -> Value {
        let (start, end, axis) = (self.ints(&[start]), self.ints(&[end]), self.ints(&[axis]));
        self.node("Slice", &[x, &start, &end, &axis], &[])
    }

    pub fn gather(&mut self, x: &Value, indices: &Value, axis: i64) -> Value {
        self.node("Gather", &[x, indices], &[("axis", Attribute::Int(axis))])
    }

    pub fn expand(&mut self, x: &Value, shape: &Value) -> Value {
        self.node("Expand", &[x, shape], &[])
    }

    /// The sizes of the axes start..end as an int64 vector.
    pub fn shape(&mut self, x: &Value, start: i64, end: i64) -> Value {
        self.node(
            "Shape",
            &[x],
            &[
                ("start", Attribute::Int(start)),
                ("end", Attribute::Int(end)),
            ],
        )
    }

    pub fn cast_to_f32(&mut self, x: &Value) -> Value {
        self.node(
            "Cast",
            &[x],
            &[("to", Attribute::Int(super::proto::DataType::Float as i64))],
        )
    }

    pub fn conv(
        &mut self,
        x: &Value,
        weight: &Value,
        bias: Option<&Value>,
        window: ConvShape,
    ) -> Value {
        let mut inputs = vec![x, weight];
        inputs.extend(bias);
        let ConvShape { stride, padding } = window;
        self.node(
            "Conv",
            &inputs,
            &[
                ("strides", Attribute::Ints(&[stride; 2])),
                ("pads", Attribute::Ints(&[padding; 4])),
            ],
        )
    }

    /// Transposed convolution without padding.
    pub fn conv_transpose(
        &mut self,
        x: &Value,
        weight: &Value,
        bias: &Value,
        stride: i64,
    ) -> Value {
        self.node(
            "ConvTranspose",
            &[x, weight, bias],
            &[("strides", Attribute::Ints(&[stride; 2]))],
        )
    }

    /// Bilinear, corner pixels aligned; `x` [1, channels, h, w] to [1, channels, height, width].
    pub fn resize_bilinear(
        &mut self,
        x: &Value,
        channels: usize,
        height: usize,
        width: usize,
    ) -> Value {
        let sizes = self.ints(&[1, channels as i64, height as i64, width as i64]);
        let absent = self.absent();
        self.node(
            "Resize",
            &[x, &absent, &absent, &sizes],
            &[
                ("mode", Attribute::Text("linear")),
                (
                    "coordinate_transformation_mode",
                    Attribute::Text("align_corners"),
                ),
            ],
        )
    }

    /// Rotates each head of `x` [batch, tokens, heads·d] in half-split form; `cos`, `sin` [batch, tokens, d/2].
    pub fn rotary_embedding(&mut self, x: &Value, cos: &Value, sin: &Value, heads: usize) -> Value {
        self.node(
            "RotaryEmbedding",
            &[x, cos, sin],
            &[("num_heads", Attribute::Int(heads as i64))],
        )
    }

    /// Unmasked softmax attention with scale 1/√d; `q` [batch, m, heads·d], `k` and `v` [batch, n, heads·d].
    pub fn multi_head_attention(&mut self, q: &Value, k: &Value, v: &Value, heads: usize) -> Value {
        self.node_in(
            MICROSOFT_DOMAIN,
            "MultiHeadAttention",
            &[q, k, v],
            &[("num_heads", Attribute::Int(heads as i64))],
        )
    }

    /// `cache` [1, n, c] with the rows of `update` [1, m, c] written from row `index` `[1]` on.
    pub fn tensor_scatter(&mut self, cache: &Value, update: &Value, index: &Value) -> Value {
        self.node(
            "TensorScatter",
            &[cache, update, index],
            &[("axis", Attribute::Int(1))],
        )
    }
}
