//! Runs the dense heads, one frame at a time.

use std::path::Path;
use std::time::Instant;

use ndarray::{Array2, Array3, ShapeError};

use super::StreamError;
use crate::network::dpt_head::{DEPTH, DEPTH_CONF, WORLD_POINTS, WORLD_POINTS_CONF};
use crate::network::grid::PatchGrid;
use crate::network::inputs::LEVELS;
use crate::network::manifest::{DEPTH_GRAPH, Manifest, POINTS_GRAPH};
use crate::runtime::{Binding, Graph, Library, RuntimeError, RuntimeOptions};
use crate::stages::{Stage, StageTimes};

/// The depth head and, where the model has one, the point head.
pub(super) struct DenseHeads {
    depth: Graph,
    points: Option<Graph>,
    grid: PatchGrid,
    level_width: usize,
    stages: StageTimes,
}

/// What the dense heads say about one frame.
pub(super) struct Dense {
    pub depth: Array2<f32>,
    pub depth_conf: Array2<f32>,
    pub world_points: Option<(Array3<f32>, Array2<f32>)>,
}

impl DenseHeads {
    pub fn open(
        library: &Library,
        folder: &Path,
        manifest: &Manifest,
        runtime: &RuntimeOptions,
    ) -> Result<Self, RuntimeError> {
        let load = |name: &str| Graph::load(library, &folder.join(name), runtime);
        Ok(Self {
            depth: load(DEPTH_GRAPH)?,
            points: manifest
                .network
                .enable_point
                .then(|| load(POINTS_GRAPH))
                .transpose()?,
            grid: manifest.size.into(),
            level_width: 2 * manifest.network.embed_dim,
            stages: StageTimes::default(),
        })
    }

    /// Time spent in each head so far.
    pub fn stages(&self) -> StageTimes {
        self.stages
    }

    /// `levels` [tokens, 2 dim] of one frame.
    pub fn run(&mut self, levels: [&[f32]; LEVELS.len()]) -> Result<Dense, StreamError> {
        let (height, width) = (self.grid.height(), self.grid.width());
        let pixels = height * width;
        let image = [1, height, width];
        let shape = [1, self.grid.tokens(), self.level_width];
        let inputs = || {
            LEVELS.iter().zip(levels).map(|(name, data)| Binding::F32 {
                name,
                shape: &shape,
                data,
            })
        };

        let start = Instant::now();
        let (mut depth, mut depth_conf) = (vec![0.0; pixels], vec![0.0; pixels]);
        let mut bindings: Vec<Binding> = inputs().collect();
        bindings.push(Binding::Output {
            name: DEPTH,
            shape: &image,
            data: &mut depth,
        });
        bindings.push(Binding::Output {
            name: DEPTH_CONF,
            shape: &image,
            data: &mut depth_conf,
        });
        self.depth.run(&mut bindings)?;
        self.stages.add_since(Stage::DepthHead, start);

        let mut world_points = None;
        if let Some(graph) = &mut self.points {
            let start = Instant::now();
            let (mut points, mut conf) = (vec![0.0; 3 * pixels], vec![0.0; pixels]);
            let points_shape = [1, height, width, 3];
            let mut bindings: Vec<Binding> = inputs().collect();
            bindings.push(Binding::Output {
                name: WORLD_POINTS,
                shape: &points_shape,
                data: &mut points,
            });
            bindings.push(Binding::Output {
                name: WORLD_POINTS_CONF,
                shape: &image,
                data: &mut conf,
            });
            graph.run(&mut bindings)?;
            self.stages.add_since(Stage::PointHead, start);
            let points = Array3::from_shape_vec((height, width, 3), points)?;
            world_points = Some((points, self.image(conf)?));
        }
        Ok(Dense {
            depth: self.image(depth)?,
            depth_conf: self.image(depth_conf)?,
            world_points,
        })
    }

    fn image(&self, values: Vec<f32>) -> Result<Array2<f32>, ShapeError> {
        Array2::from_shape_vec((self.grid.height(), self.grid.width()), values)
    }
}
