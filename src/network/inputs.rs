//! Inputs and outputs of the step graph, by name: the contract between the exporter and the stream.
//!
//! | input | type and shape | content |
//! |---|---|---|
//! | `image` | uint8 [frames, height, width, 3] | RGB |
//! | `first_variant` | int64 \[frames\] | 0 for the first frame of the stream, else 1 |
//! | `scale_variant` | int64 \[frames\] | 0 for scale frames, else 1 |
//! | `frame_cos`, `frame_sin` | float32 [frames, tokens, d/2] | rotary table of frame blocks |
//! | `global_cos`, `global_sin` | float32 [1, frames · tokens, d/2] | rotary table of global blocks |
//! | `write_index` | int64 \[1\] | row of the global caches that the first new token takes |
//! | `camera_write_index` | int64 \[1\] | row of the camera caches that the first new frame takes |
//! | `global_key_i`, `global_value_i` | float32 [1, rows, dim] | the attended rows of the cache of global block i |
//! | `camera_key_i_j`, `camera_value_i_j` | float32 [1, rows, 2 dim] | the same of iteration i, block j of the camera head |
//!
//! | output | type and shape | content |
//! |---|---|---|
//! | `pose_enc` | float32 [frames, 9] | translation, quaternion x y z w, vertical and horizontal field of view |
//! | `level_k` | float32 [frames, tokens, 2 dim] | what the dense heads read, k in 0..4 |
//! | `NAME_out` for each cache | as its input | to be bound to the memory of the input |

use super::config::NetworkConfig;
use super::grid::PatchGrid;
use super::layers::Net;
use super::onnx::{Dim, ElementType, GraphBuilder, Value};

pub const IMAGE: &str = "image";
pub const FIRST_VARIANT: &str = "first_variant";
pub const SCALE_VARIANT: &str = "scale_variant";
pub const FRAME_COS: &str = "frame_cos";
pub const FRAME_SIN: &str = "frame_sin";
pub const GLOBAL_COS: &str = "global_cos";
pub const GLOBAL_SIN: &str = "global_sin";
pub const WRITE_INDEX: &str = "write_index";
pub const CAMERA_WRITE_INDEX: &str = "camera_write_index";
pub const POSE_ENC: &str = "pose_enc";

/// The levels that the dense heads read: outputs of the step graph, inputs of theirs.
pub const LEVELS: [&str; 4] = ["level_0", "level_1", "level_2", "level_3"];

const FRAMES: Dim = Dim::Symbolic("frames");

/// Names of the two caches of one attention: (key, value).
pub type CacheNames = (String, String);

/// Names of the caches of the global blocks, in order.
pub fn global_cache_names(config: &NetworkConfig) -> Vec<CacheNames> {
    (0..config.depth)
        .map(|layer| {
            (
                format!("global_key_{layer}"),
                format!("global_value_{layer}"),
            )
        })
        .collect()
}

/// Names of the camera head's caches, iteration by iteration, block by block.
pub fn camera_cache_names(config: &NetworkConfig, iterations: usize) -> Vec<CacheNames> {
    (0..iterations)
        .flat_map(|i| {
            (0..config.cam_depth).map(move |j| {
                (
                    format!("camera_key_{i}_{j}"),
                    format!("camera_value_{i}_{j}"),
                )
            })
        })
        .collect()
}

/// Name of the output that continues the cache `name`.
pub fn cache_output(name: &str) -> String {
    format!("{name}_out")
}

/// The two caches of one attention, in the graph.
pub(super) struct CacheInput {
    names: CacheNames,
    key: Value,
    value: Value,
    width: usize,
}

impl CacheInput {
    fn declare(
        graph: &mut GraphBuilder,
        names: &CacheNames,
        rows: &'static str,
        width: usize,
    ) -> Self {
        let shape = [Dim::Fixed(1), Dim::Symbolic(rows), Dim::Fixed(width)];
        Self {
            key: graph.input(&names.0, ElementType::F32, &shape),
            value: graph.input(&names.1, ElementType::F32, &shape),
            names: names.clone(),
            width,
        }
    }

    /// Writes the new keys and values, each [1, tokens, width], and returns all that may be attended.
    pub fn store(
        &self,
        net: &mut Net,
        key: &Value,
        value: &Value,
        index: &Value,
    ) -> (Value, Value) {
        let mut scatter = |cache: &Value, update: &Value, name: &str, rows| {
            let whole = net.graph.tensor_scatter(cache, update, index);
            let shape = [Dim::Fixed(1), Dim::Symbolic(rows), Dim::Fixed(self.width)];
            net.graph
                .output(&whole, &cache_output(name), ElementType::F32, &shape);
            whole
        };
        let rows = "rows_out";
        (
            scatter(&self.key, key, &self.names.0, rows),
            scatter(&self.value, value, &self.names.1, rows),
        )
    }
}

/// All inputs of the step graph.
pub(super) struct StepInputs {
    pub image: Value,
    pub first_variant: Value,
    pub scale_variant: Value,
    pub frame_cos: Value,
    pub frame_sin: Value,
    pub global_cos: Value,
    pub global_sin: Value,
    pub write_index: Value,
    pub camera_write_index: Value,
    global_caches: Vec<CacheInput>,
    camera_caches: Vec<CacheInput>,
    camera_depth: usize,
}

impl StepInputs {
    pub fn declare(
        graph: &mut GraphBuilder,
        config: &NetworkConfig,
        iterations: usize,
        grid: PatchGrid,
    ) -> Self {
        let half = Dim::Fixed(config.head_dim / 2);
        let frame_table = [FRAMES, grid.tokens().into(), half];
        let global_table = [Dim::Fixed(1), Dim::Symbolic("frame_tokens"), half];
        Self {
            image: graph.input(
                IMAGE,
                ElementType::U8,
                &[FRAMES, grid.height().into(), grid.width().into(), 3.into()],
            ),
            first_variant: graph.input(FIRST_VARIANT, ElementType::I64, &[FRAMES]),
            scale_variant: graph.input(SCALE_VARIANT, ElementType::I64, &[FRAMES]),
            frame_cos: graph.input(FRAME_COS, ElementType::F32, &frame_table),
            frame_sin: graph.input(FRAME_SIN, ElementType::F32, &frame_table),
            global_cos: graph.input(GLOBAL_COS, ElementType::F32, &global_table),
            global_sin: graph.input(GLOBAL_SIN, ElementType::F32, &global_table),
            write_index: graph.input(WRITE_INDEX, ElementType::I64, &[1.into()]),
            camera_write_index: graph.input(CAMERA_WRITE_INDEX, ElementType::I64, &[1.into()]),
            global_caches: global_cache_names(config)
                .iter()
                .map(|names| CacheInput::declare(graph, names, "cached_tokens", config.embed_dim))
                .collect(),
            camera_caches: camera_cache_names(config, iterations)
                .iter()
                .map(|names| {
                    CacheInput::declare(graph, names, "cached_frames", 2 * config.embed_dim)
                })
                .collect(),
            camera_depth: config.cam_depth,
        }
    }

    pub fn global_cache(&self, layer: usize) -> &CacheInput {
        &self.global_caches[layer]
    }

    pub fn camera_cache(&self, iteration: usize, block: usize) -> &CacheInput {
        &self.camera_caches[iteration * self.camera_depth + block]
    }
}

/// Declares the outputs of the step graph other than the caches.
pub(super) fn declare_outputs(
    graph: &mut GraphBuilder,
    config: &NetworkConfig,
    grid: PatchGrid,
    pose: &Value,
    levels: &[Value],
) {
    graph.output(pose, POSE_ENC, ElementType::F32, &[FRAMES, 9.into()]);
    for (name, level) in LEVELS.iter().zip(levels) {
        let shape = [FRAMES, grid.tokens().into(), (2 * config.embed_dim).into()];
        graph.output(level, name, ElementType::F32, &shape);
    }
}
