//! What all parts of the network are made of: linear layers, layer norms and pre-norm transformer blocks.

use super::checkpoint::TensorSource;
use super::export::ExportError;
use super::onnx::{GraphBuilder, Value};

/// A graph under construction together with the checkpoint that its weights come from.
pub(super) struct Net<'n, 'w, 'p> {
    pub graph: GraphBuilder<'w, 'p>,
    pub source: &'n dyn TensorSource,
}

#[derive(Clone)]
pub(super) struct Linear {
    weight: Value,
    bias: Value,
}

#[derive(Clone)]
pub(super) struct LayerNorm {
    scale: Value,
    bias: Option<Value>,
    epsilon: f32,
}

impl Net<'_, '_, '_> {
    /// The values of a checkpoint tensor that must have this shape.
    pub fn read(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ExportError> {
        match self.source.shape(name) {
            None => Err(ExportError::MissingTensor(name.to_owned())),
            Some(found) if found != shape => Err(ExportError::WrongShape {
                name: name.to_owned(),
                found: found.to_vec(),
                expected: shape.to_vec(),
            }),
            Some(_) => Ok(self.source.read_f32(name)?),
        }
    }

    /// An initializer with the values of a checkpoint tensor.
    pub fn load(&mut self, name: &str, shape: &[usize]) -> Result<Value, ExportError> {
        let values = self.read(name, shape)?;
        Ok(self.graph.weight(name, shape, &values)?)
    }

    pub fn load_linear(
        &mut self,
        key: &str,
        output: usize,
        input: usize,
    ) -> Result<Linear, ExportError> {
        Ok(Linear {
            weight: self.load(&format!("{key}.weight"), &[output, input])?,
            bias: self.load(&format!("{key}.bias"), &[output])?,
        })
    }

    /// A linear layer whose result is multiplied by a learned vector (LayerScale), folded into weight and bias.
    fn load_scaled_linear(
        &mut self,
        key: &str,
        gamma: &str,
        output: usize,
        input: usize,
    ) -> Result<Linear, ExportError> {
        let gamma = self.read(gamma, &[output])?;
        let (weight_name, bias_name) = (format!("{key}.weight"), format!("{key}.bias"));
        let mut weight = self.read(&weight_name, &[output, input])?;
        for (row, scale) in weight.chunks_exact_mut(input).zip(&gamma) {
            row.iter_mut().for_each(|w| *w *= scale);
        }
        let mut bias = self.read(&bias_name, &[output])?;
        bias.iter_mut()
            .zip(&gamma)
            .for_each(|(b, scale)| *b *= scale);
        Ok(Linear {
            weight: self.graph.weight(&weight_name, &[output, input], &weight)?,
            bias: self.graph.weight(&bias_name, &[output], &bias)?,
        })
    }

    pub fn load_layer_norm(
        &mut self,
        key: &str,
        size: usize,
        epsilon: f64,
    ) -> Result<LayerNorm, ExportError> {
        Ok(LayerNorm {
            scale: self.load(&format!("{key}.weight"), &[size])?,
            bias: Some(self.load(&format!("{key}.bias"), &[size])?),
            epsilon: epsilon as f32,
        })
    }

    /// A layer norm without learned scale and bias.
    pub fn plain_layer_norm(
        &mut self,
        name: &str,
        size: usize,
        epsilon: f64,
    ) -> Result<LayerNorm, ExportError> {
        Ok(LayerNorm {
            scale: self.graph.weight(name, &[size], &vec![1.0; size])?,
            bias: None,
            epsilon: epsilon as f32,
        })
    }

    /// `x` [m, in] to [m, out].
    pub fn linear(&mut self, x: &Value, layer: &Linear) -> Value {
        self.graph.gemm(x, &layer.weight, &layer.bias)
    }

    pub fn layer_norm(&mut self, x: &Value, norm: &LayerNorm) -> Value {
        self.graph
            .layer_norm(x, &norm.scale, norm.bias.as_ref(), norm.epsilon)
    }
}

/// Sizes of a transformer block and of what its attention needs.
pub(super) struct BlockShape<'a> {
    pub dim: usize,
    pub heads: usize,
    pub hidden: usize,
    pub epsilon: f64,
    /// With rotary embedding, queries and keys are normalised per head, and their rows are stored in this order so
    /// that the rotation takes its half-split form (attention does not see a permutation that both share).
    pub rotary: Option<&'a [usize]>,
}

/// The parameters of one pre-norm block, loaded once and usable any number of times in one graph.
pub(super) struct Block {
    dim: usize,
    heads: usize,
    norm1: LayerNorm,
    qkv: [Linear; 3],
    qk_norm: Option<[LayerNorm; 2]>,
    projection: Linear,
    norm2: LayerNorm,
    fc1: Linear,
    fc2: Linear,
}

/// Queries, keys and values of all tokens, each [tokens, dim], keys and queries normalised but not yet rotated.
pub(super) struct Qkv {
    pub q: Value,
    pub k: Value,
    pub v: Value,
}

impl Block {
    pub fn load(net: &mut Net, key: &str, shape: &BlockShape) -> Result<Self, ExportError> {
        let BlockShape {
            dim,
            heads,
            hidden,
            epsilon,
            rotary,
        } = *shape;
        let qk_norm = match rotary {
            None => None,
            Some(order) => Some([
                Self::load_head_norm(net, &format!("{key}.attn.q_norm"), order, epsilon)?,
                Self::load_head_norm(net, &format!("{key}.attn.k_norm"), order, epsilon)?,
            ]),
        };
        Ok(Self {
            dim,
            heads,
            norm1: net.load_layer_norm(&format!("{key}.norm1"), dim, epsilon)?,
            qkv: Self::load_qkv(net, key, dim, rotary)?,
            qk_norm,
            projection: net.load_scaled_linear(
                &format!("{key}.attn.proj"),
                &format!("{key}.ls1.gamma"),
                dim,
                dim,
            )?,
            norm2: net.load_layer_norm(&format!("{key}.norm2"), dim, epsilon)?,
            fc1: net.load_linear(&format!("{key}.mlp.fc1"), hidden, dim)?,
            fc2: net.load_scaled_linear(
                &format!("{key}.mlp.fc2"),
                &format!("{key}.ls2.gamma"),
                dim,
                hidden,
            )?,
        })
    }

    fn load_head_norm(
        net: &mut Net,
        key: &str,
        order: &[usize],
        epsilon: f64,
    ) -> Result<LayerNorm, ExportError> {
        let mut parts = Vec::with_capacity(2);
        for part in ["weight", "bias"] {
            let name = format!("{key}.{part}");
            let values = net.read(&name, &[order.len()])?;
            let permuted: Vec<f32> = order.iter().map(|&j| values[j]).collect();
            parts.push(net.graph.weight(&name, &[order.len()], &permuted)?);
        }
        let bias = parts.pop();
        Ok(LayerNorm {
            scale: parts.remove(0),
            bias,
            epsilon: epsilon as f32,
        })
    }

    /// The checkpoint keeps the three in one matrix, rows ordered (q | k | v) and head by head within each.
    fn load_qkv(
        net: &mut Net,
        key: &str,
        dim: usize,
        rotary: Option<&[usize]>,
    ) -> Result<[Linear; 3], ExportError> {
        let weight = net.read(&format!("{key}.attn.qkv.weight"), &[3 * dim, dim])?;
        let bias = net.read(&format!("{key}.attn.qkv.bias"), &[3 * dim])?;
        let mut part =
            |index: usize, name: &str, order: Option<&[usize]>| -> Result<Linear, ExportError> {
                let weight = &weight[index * dim * dim..(index + 1) * dim * dim];
                let bias = &bias[index * dim..(index + 1) * dim];
                let rows: Vec<usize> = match order {
                    None => (0..dim).collect(),
                    Some(order) => (0..dim)
                        .map(|row| row - row % order.len() + order[row % order.len()])
                        .collect(),
                };
                let weight: Vec<f32> = rows
                    .iter()
                    .flat_map(|&row| &weight[row * dim..(row + 1) * dim])
                    .copied()
                    .collect();
                let bias: Vec<f32> = rows.iter().map(|&row| bias[row]).collect();
                Ok(Linear {
                    weight: net.graph.weight(
                        &format!("{key}.attn.{name}.weight"),
                        &[dim, dim],
                        &weight,
                    )?,
                    bias: net
                        .graph
                        .weight(&format!("{key}.attn.{name}.bias"), &[dim], &bias)?,
                })
            };
        Ok([
            part(0, "q", rotary)?,
            part(1, "k", rotary)?,
            part(2, "v", None)?,
        ])
    }

    /// `x` [tokens, dim] to the same; `attend` turns [`Qkv`] into the attention's result in any shape that holds
    /// tokens · dim values.
    pub fn apply(
        &self,
        net: &mut Net,
        x: &Value,
        attend: impl FnOnce(&mut Net, Qkv) -> Value,
    ) -> Value {
        let h = net.layer_norm(x, &self.norm1);
        let [mut q, mut k, v] = [0, 1, 2].map(|i| net.linear(&h, &self.qkv[i]));
        if let Some([q_norm, k_norm]) = &self.qk_norm {
            q = self.normalise_heads(net, &q, q_norm);
            k = self.normalise_heads(net, &k, k_norm);
        }
        let attended = attend(net, Qkv { q, k, v });
        let attended = net.graph.reshape(&attended, &[-1, self.dim as i64]);
        let attended = net.linear(&attended, &self.projection);
        let x = net.graph.add(x, &attended);

        let h = net.layer_norm(&x, &self.norm2);
        let h = net.linear(&h, &self.fc1);
        let h = net.graph.gelu(&h);
        let h = net.linear(&h, &self.fc2);
        net.graph.add(&x, &h)
    }

    fn normalise_heads(&self, net: &mut Net, x: &Value, norm: &LayerNorm) -> Value {
        let heads = net.graph.reshape(x, &[-1, (self.dim / self.heads) as i64]);
        let heads = net.layer_norm(&heads, norm);
        net.graph.reshape(&heads, &[-1, self.dim as i64])
    }
}
