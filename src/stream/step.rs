//! Runs the step graph: images in, poses and levels out, keys and values into the caches.

use std::path::Path;
use std::time::Instant;

use super::StreamConfig;
use super::cache::{CacheError, CacheStatus, KvCache};
use super::cameras::{CameraLayout, CameraPlan};
use super::layout::{CacheLayout, FrameRole, StepPlan};
use crate::network::grid::PatchGrid;
use crate::network::inputs as names;
use crate::network::manifest::{Manifest, STEP_GRAPH};
use crate::network::rope::{Rope, RotaryTable};
use crate::runtime::{Binding, Graph, Library, Provider, RuntimeError, RuntimeOptions};
use crate::stages::{Stage, StageTimes};

/// Values of a pose encoding.
pub const POSE_VALUES: usize = 9;

/// The step graph with its caches and the memory of one call, which is reused from call to call.
pub struct StepRunner {
    graph: Graph,
    manifest: Manifest,
    grid: PatchGrid,
    rope: Rope,
    layout: CacheLayout,
    camera_layout: CameraLayout,
    tokens: KvCache,
    cameras: KvCache,
    buffers: CallBuffers,
    /// Whether the last call's frame lies in the spare rows and may still be stored.
    promotable: bool,
    stages: StageTimes,
}

#[derive(Default)]
struct CallBuffers {
    first_variant: Vec<i64>,
    scale_variant: Vec<i64>,
    frame_table: RotaryTable,
    global_table: RotaryTable,
    pose: Vec<f32>,
    levels: [Vec<f32>; names::LEVELS.len()],
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// Before anything was written: the caches are as they were.
    #[error(transparent)]
    Memory(#[from] CacheError),
    /// While the graph ran: what the caches hold is not known.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl StepRunner {
    /// Loads the graph and allocates the caches.
    pub fn open(
        library: &Library,
        folder: &Path,
        manifest: &Manifest,
        runtime: &RuntimeOptions,
        config: &StreamConfig,
    ) -> Result<Self, StepError> {
        let network = &manifest.network;
        let grid = PatchGrid::from(manifest.size);
        let rules = config.cache_rules(grid);
        let rows = config.first_segment(&rules);
        let tokens = KvCache::new(
            &names::global_cache_names(network),
            network.embed_dim,
            rows.tokens,
        )?;
        let cameras = KvCache::new(
            &names::camera_cache_names(network, manifest.camera_num_iterations),
            2 * network.embed_dim,
            rows.cameras,
        )?;
        Ok(Self {
            graph: Graph::load(library, &folder.join(STEP_GRAPH), runtime)?,
            rope: Rope::new(network, grid),
            manifest: manifest.clone(),
            grid,
            layout: CacheLayout::new(rules),
            camera_layout: config.camera_layout(),
            tokens,
            cameras,
            buffers: CallBuffers::default(),
            promotable: false,
            stages: StageTimes::default(),
        })
    }

    pub fn provider(&self) -> Provider {
        self.graph.provider()
    }

    /// Shape of the image that the graph takes, [frames, height, width, 3]; what is not fixed is -1.
    pub fn image_shape(&self) -> &[i64] {
        self.graph.input_shape(names::IMAGE).unwrap_or_default()
    }

    /// Time spent on the caches and in the graph so far.
    pub fn stages(&self) -> StageTimes {
        self.stages
    }

    /// Frames stored since the start; 0 before the scale call.
    pub fn stored(&self) -> usize {
        self.layout.stored()
    }

    /// State of the token caches; rows are tokens.
    pub fn token_cache(&self) -> CacheStatus {
        self.tokens.status(self.layout.valid())
    }

    /// State of the camera head's caches; rows are frames.
    pub fn camera_cache(&self) -> CacheStatus {
        self.cameras.status(self.camera_layout.valid())
    }

    /// One row of a cache as it lies in memory, by the cache's name in the step graph.
    pub fn cache_row(&self, name: &str, row: usize) -> Option<&[f32]> {
        self.tokens
            .row(name, row)
            .or_else(|| self.cameras.row(name, row))
    }

    /// Forgets all frames; the caches stay allocated.
    pub fn reset(&mut self) {
        self.layout.clear();
        self.camera_layout.clear();
        self.promotable = false;
    }

    /// Gives back what the last call needed; the next one allocates anew.
    pub fn release_buffers(&mut self) {
        self.buffers = CallBuffers::default();
    }

    /// The first call, with all scale frames: `image` [frames, height, width, 3], RGB bytes. `taps` are bound as they
    /// are, for graphs with more outputs than the exporter declares.
    pub fn scale_call(
        &mut self,
        image: &[u8],
        frames: usize,
        taps: Vec<Binding>,
    ) -> Result<(), StepError> {
        let plan = self.layout.plan_scale(frames);
        self.call(&plan, image, frames, taps)
    }

    /// A later call, with one frame: `image` [1, height, width, 3].
    pub fn step(
        &mut self,
        image: &[u8],
        role: FrameRole,
        taps: Vec<Binding>,
    ) -> Result<(), StepError> {
        let plan = self.layout.plan_step(role);
        self.call(&plan, image, 1, taps)
    }

    /// Stores the frame of the last call, which was run as [`FrameRole::Other`]: a copy of its rows, no second run. Returns
    /// whether there was such a frame.
    pub fn promote(&mut self) -> bool {
        if !std::mem::take(&mut self.promotable) {
            return false;
        }
        let start = Instant::now();
        let plan = self.layout.plan_promotion();
        self.tokens.apply(&plan.moves);
        self.layout.commit(&plan);
        let plan = self.camera_layout.plan_promotion();
        self.cameras.apply(&plan.moves);
        self.camera_layout.commit(&plan, 1);
        self.stages.add_since(Stage::Cache, start);
        true
    }

    /// Pose encoding of a frame of the last call.
    pub fn pose(&self, frame: usize) -> [f32; POSE_VALUES] {
        let mut pose = [0.0; POSE_VALUES];
        pose.copy_from_slice(&self.buffers.pose[frame * POSE_VALUES..][..POSE_VALUES]);
        pose
    }

    /// The levels of a frame of the last call, each [tokens, 2 dim].
    pub fn levels(&self, frame: usize) -> [&[f32]; names::LEVELS.len()] {
        let len = self.grid.tokens() * 2 * self.manifest.network.embed_dim;
        std::array::from_fn(|k| &self.buffers.levels[k][frame * len..][..len])
    }

    fn call(
        &mut self,
        plan: &StepPlan,
        image: &[u8],
        frames: usize,
        taps: Vec<Binding>,
    ) -> Result<(), StepError> {
        self.promotable = false;
        let start = Instant::now();
        let cameras = self.camera_layout.plan(frames, plan.stores());
        self.reserve(plan, &cameras)?;
        self.tokens.apply(&plan.moves);
        self.cameras.apply(&cameras.moves);
        self.stages.add_since(Stage::Cache, start);
        let start = Instant::now();
        self.run(plan, &cameras, image, frames, taps)?;
        self.stages.add_since(Stage::Step, start);
        self.layout.commit(plan);
        if plan.stores() {
            self.camera_layout.commit(&cameras, frames);
        }
        self.promotable = !plan.stores();
        Ok(())
    }

    /// Moves caches that are too small for the call to segments with twice the room for growth.
    fn reserve(&mut self, plan: &StepPlan, cameras: &CameraPlan) -> Result<(), CacheError> {
        let rules = self.layout.rules();
        // Beside the evicted specials there is always room for a frame that is not stored, now or later.
        let history = if plan.stores() {
            self.layout.next_history()
        } else {
            self.layout.history()
        };
        self.tokens.reserve(
            rules.capacity_for(history),
            self.layout.valid(),
            rules.capacity_for(2 * history),
        )?;
        self.cameras.reserve(
            cameras.attended,
            self.camera_layout.valid(),
            2 * cameras.attended,
        )
    }

    fn run(
        &mut self,
        plan: &StepPlan,
        cameras: &CameraPlan,
        image: &[u8],
        frames: usize,
        taps: Vec<Binding>,
    ) -> Result<(), RuntimeError> {
        let grid = self.grid;
        let network = &self.manifest.network;
        let (frame_tokens, half) = (grid.tokens(), network.head_dim / 2);
        let stored = self.layout.stored();
        let CallBuffers {
            first_variant,
            scale_variant,
            frame_table,
            global_table,
            pose,
            levels,
        } = &mut self.buffers;

        let is_start = stored == 0;
        first_variant.clear();
        first_variant.extend((0..frames).map(|frame| i64::from(!(is_start && frame == 0))));
        scale_variant.clear();
        scale_variant.extend((0..frames).map(|_| i64::from(!is_start)));
        // The table is the same for every frame; it is laid out again only when the number of frames changes.
        if frame_table.cos.len() != frames * frame_tokens * half {
            frame_table.cos = self.rope.frame_table().cos.repeat(frames);
            frame_table.sin = self.rope.frame_table().sin.repeat(frames);
        }
        self.rope.fill_global(stored as u64, frames, global_table);
        pose.resize(frames * POSE_VALUES, 0.0);
        let level_len = frames * frame_tokens * 2 * network.embed_dim;
        levels
            .iter_mut()
            .for_each(|level| level.resize(level_len, 0.0));

        let image_shape = [frames, grid.height(), grid.width(), 3];
        let variant_shape = [frames];
        let frame_shape = [frames, frame_tokens, half];
        let global_shape = [1, frames * frame_tokens, half];
        let pose_shape = [frames, POSE_VALUES];
        let level_shape = [frames, frame_tokens, 2 * network.embed_dim];
        let token_shape = [1, plan.attended, network.embed_dim];
        let camera_shape = [1, cameras.attended, 2 * network.embed_dim];
        let write_index = [plan.write as i64];
        let camera_write_index = [cameras.write as i64];
        let mut bindings = taps;
        bindings.extend([
            Binding::U8 {
                name: names::IMAGE,
                shape: &image_shape,
                data: image,
            },
            Binding::I64 {
                name: names::FIRST_VARIANT,
                shape: &variant_shape,
                data: first_variant,
            },
            Binding::I64 {
                name: names::SCALE_VARIANT,
                shape: &variant_shape,
                data: scale_variant,
            },
            Binding::F32 {
                name: names::FRAME_COS,
                shape: &frame_shape,
                data: &frame_table.cos,
            },
            Binding::F32 {
                name: names::FRAME_SIN,
                shape: &frame_shape,
                data: &frame_table.sin,
            },
            Binding::F32 {
                name: names::GLOBAL_COS,
                shape: &global_shape,
                data: &global_table.cos,
            },
            Binding::F32 {
                name: names::GLOBAL_SIN,
                shape: &global_shape,
                data: &global_table.sin,
            },
            Binding::I64 {
                name: names::WRITE_INDEX,
                shape: &[1],
                data: &write_index,
            },
            Binding::I64 {
                name: names::CAMERA_WRITE_INDEX,
                shape: &[1],
                data: &camera_write_index,
            },
            Binding::Output {
                name: names::POSE_ENC,
                shape: &pose_shape,
                data: pose,
            },
        ]);
        let levels = names::LEVELS.iter().zip(levels);
        bindings.extend(levels.map(|(name, data)| Binding::Output {
            name,
            shape: &level_shape,
            data,
        }));
        bindings.extend(self.tokens.bind(&token_shape));
        bindings.extend(self.cameras.bind(&camera_shape));
        self.graph.run(&mut bindings)
    }
}
