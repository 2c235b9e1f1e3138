//! The dense heads: a convolutional decoder (DPT) from the aggregator's levels to one value per pixel.

use super::config::NetworkConfig;
use super::export::ExportError;
use super::grid::{PatchGrid, SPECIAL_TOKENS};
use super::inputs::LEVELS;
use super::layers::Net;
use super::onnx::{ConvShape, Dim, ElementType, Value};

pub const DEPTH: &str = "depth";
pub const DEPTH_CONF: &str = "depth_conf";
pub const WORLD_POINTS: &str = "world_points";
pub const WORLD_POINTS_CONF: &str = "world_points_conf";

/// Channels of the last hidden layer, the same in every published network.
const HIDDEN: usize = 32;

/// Strength of the position embedding that is added to feature maps.
const POSITION_SCALE: f64 = 0.1;

/// What a dense head predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseHead {
    /// Depth [1, height, width] and its confidence.
    Depth,
    /// World points [1, height, width, 3] and their confidence.
    Points,
}

impl DenseHead {
    fn key(self) -> &'static str {
        match self {
            DenseHead::Depth => "depth_head",
            DenseHead::Points => "point_head",
        }
    }

    pub(super) fn graph_name(self) -> &'static str {
        match self {
            DenseHead::Depth => "depth",
            DenseHead::Points => "points",
        }
    }

    fn channels(self) -> usize {
        match self {
            DenseHead::Depth => 2,
            DenseHead::Points => 4,
        }
    }
}

struct Decoder<'a, 'n, 'w, 'p> {
    net: &'a mut Net<'n, 'w, 'p>,
    key: &'static str,
    grid: PatchGrid,
    features: usize,
}

/// Height and width of a feature map.
type Extent = (usize, usize);

/// Builds the graph of one head for one frame, from its inputs `level_0` … `level_3` to its outputs.
pub(super) fn build(
    net: &mut Net,
    config: &NetworkConfig,
    grid: PatchGrid,
    head: DenseHead,
) -> Result<(), ExportError> {
    let dim = 2 * config.embed_dim;
    let shape = [Dim::Fixed(1), grid.tokens().into(), dim.into()];
    let levels = LEVELS.map(|name| net.graph.input(name, ElementType::F32, &shape));
    let mut decoder = Decoder {
        net,
        key: head.key(),
        grid,
        features: config.dpt_features,
    };

    let pyramid = decoder.pyramid(&levels, dim, config)?;
    let fused = decoder.fuse(&pyramid)?;
    let values = decoder.predict(&fused, head.channels())?;
    let (height, width) = (grid.height(), grid.width());
    let channels = head.channels() as i64;
    let graph = &mut decoder.net.graph;

    let logit = graph.slice(&values, 1, channels - 1, channels);
    let one = graph.weight("one", &[1], &[1.0])?;
    let confidence = graph.exp(&logit);
    let confidence = graph.add(&confidence, &one);
    let confidence = graph.reshape(&confidence, &[1, height as i64, width as i64]);
    let value = graph.slice(&values, 1, 0, channels - 1);
    let image = [Dim::Fixed(1), height.into(), width.into()];
    match head {
        DenseHead::Depth => {
            let depth = graph.exp(&value);
            let depth = graph.reshape(&depth, &[1, height as i64, width as i64]);
            graph.output(&depth, DEPTH, ElementType::F32, &image);
            graph.output(&confidence, DEPTH_CONF, ElementType::F32, &image);
        }
        DenseHead::Points => {
            // sign(v) · (exp(|v|) - 1)
            let sign = graph.node("Sign", &[&value], &[]);
            let magnitude = graph.node("Abs", &[&value], &[]);
            let magnitude = graph.exp(&magnitude);
            let magnitude = graph.sub(&magnitude, &one);
            let points = graph.mul(&sign, &magnitude);
            let points = graph.transpose(&points, &[0, 2, 3, 1]);
            graph.output(
                &points,
                WORLD_POINTS,
                ElementType::F32,
                &[image[0], image[1], image[2], Dim::Fixed(3)],
            );
            graph.output(&confidence, WORLD_POINTS_CONF, ElementType::F32, &image);
        }
    }
    Ok(())
}

impl Decoder<'_, '_, '_, '_> {
    /// The four levels as feature maps of 4, 2, 1 and 1/2 times the patch grid, with their extents.
    fn pyramid(
        &mut self,
        levels: &[Value],
        dim: usize,
        config: &NetworkConfig,
    ) -> Result<Vec<(Value, Extent)>, ExportError> {
        let (rows, columns) = (self.grid.rows(), self.grid.columns());
        let norm =
            self.net
                .load_layer_norm(&format!("{}.norm", self.key), dim, config.dpt_norm_eps)?;
        let mut maps = Vec::with_capacity(levels.len());
        for (k, (level, &channels)) in levels.iter().zip(&config.dpt_out).enumerate() {
            let tokens = self
                .net
                .graph
                .reshape(level, &[self.grid.tokens() as i64, dim as i64]);
            let patches =
                self.net
                    .graph
                    .slice(&tokens, 0, SPECIAL_TOKENS as i64, self.grid.tokens() as i64);
            let patches = self.net.layer_norm(&patches, &norm);
            let projected = self.project(&patches, k, dim, channels)?;
            let map = self.net.graph.reshape(
                &projected,
                &[1, rows as i64, columns as i64, channels as i64],
            );
            let map = self.net.graph.transpose(&map, &[0, 3, 1, 2]);
            let key = format!("resize_layers.{k}");
            let (map, extent) = match k {
                0 => (
                    self.enlarge(&map, &key, channels, 4)?,
                    (4 * rows, 4 * columns),
                ),
                1 => (
                    self.enlarge(&map, &key, channels, 2)?,
                    (2 * rows, 2 * columns),
                ),
                2 => (map, (rows, columns)),
                _ => {
                    let halve = ConvShape {
                        stride: 2,
                        padding: 1,
                    };
                    (
                        self.conv(&map, &key, [channels, channels, 3], halve)?,
                        (rows.div_ceil(2), columns.div_ceil(2)),
                    )
                }
            };
            self.label(&map, format!("resize_{k}"));
            let weight = self.load(
                &format!("scratch.layer{}_rn.weight", k + 1),
                &[self.features, channels, 3, 3],
            )?;
            maps.push((
                self.net.graph.conv(&map, &weight, None, ConvShape::same(3)),
                extent,
            ));
        }
        Ok(maps)
    }

    /// The 1x1 convolution of level `k` as a matrix product; the position embedding of its map rides on the bias.
    fn project(
        &mut self,
        patches: &Value,
        k: usize,
        dim: usize,
        channels: usize,
    ) -> Result<Value, ExportError> {
        let key = format!("{}.projects.{k}", self.key);
        let weight = self
            .net
            .read(&format!("{key}.weight"), &[channels, dim, 1, 1])?;
        let weight = self
            .net
            .graph
            .weight(&format!("{key}.weight"), &[channels, dim], &weight)?;
        let bias = self.net.read(&format!("{key}.bias"), &[channels])?;
        let position =
            MapPosition::new(channels, self.grid, (self.grid.rows(), self.grid.columns()));
        let offset: Vec<f32> = self
            .grid
            .patches()
            .flat_map(|(row, column)| {
                bias.iter()
                    .zip(position.at(row, column))
                    .map(|(&b, p)| (f64::from(b) + p) as f32)
                    .collect::<Vec<_>>()
            })
            .collect();
        let offset = self.net.graph.weight(
            &format!("{key}.offset"),
            &[self.grid.patch_count(), channels],
            &offset,
        )?;
        Ok(self.net.graph.gemm(patches, &weight, &offset))
    }

    /// From coarse to fine: each map is refined, brought to the extent of the next and added to it.
    fn fuse(&mut self, pyramid: &[(Value, Extent)]) -> Result<Value, ExportError> {
        let mut fused: Option<Value> = None;
        for (k, (map, extent)) in pyramid.iter().enumerate().rev() {
            let key = format!("scratch.refinenet{}", k + 1);
            let sum = match fused {
                None => map.clone(),
                Some(coarser) => {
                    let refined = self.residual(map, &format!("{key}.resConfUnit1"))?;
                    self.net.graph.add(&coarser, &refined)
                }
            };
            let refined = self.residual(&sum, &format!("{key}.resConfUnit2"))?;
            // A 1x1 convolution and a resize whose weights sum to one commute; the smaller map is the cheaper place.
            let mixed = self.conv(
                &refined,
                &format!("{key}.out_conv"),
                [self.features, self.features, 1],
                ConvShape::same(1),
            )?;
            let (height, width) = match k {
                0 => (2 * extent.0, 2 * extent.1),
                _ => pyramid[k - 1].1,
            };
            let resized = self
                .net
                .graph
                .resize_bilinear(&mixed, self.features, height, width);
            self.label(&resized, format!("refinenet_{}", k + 1));
            fused = Some(resized);
        }
        fused.ok_or_else(|| ExportError::Config("the dense heads need four levels".into()))
    }

    /// relu(x) + conv(relu(conv(relu(x)))). The skip carries relu(x), not x: the trained network's activation works in
    /// place on the value that the skip shares.
    fn residual(&mut self, x: &Value, key: &str) -> Result<Value, ExportError> {
        let shape = [self.features, self.features, 3];
        let active = self.net.graph.relu(x);
        let y = self.conv(&active, &format!("{key}.conv1"), shape, ConvShape::same(3))?;
        let y = self.net.graph.relu(&y);
        let y = self.conv(&y, &format!("{key}.conv2"), shape, ConvShape::same(3))?;
        Ok(self.net.graph.add(&y, &active))
    }

    /// The fused map [1, features, 8 rows, 8 columns] to raw values [1, channels, height, width].
    fn predict(&mut self, fused: &Value, channels: usize) -> Result<Value, ExportError> {
        let half = self.features / 2;
        let (height, width) = (self.grid.height(), self.grid.width());
        let x = self.conv(
            fused,
            "scratch.output_conv1",
            [half, self.features, 3],
            ConvShape::same(3),
        )?;
        let mut x = self.net.graph.resize_bilinear(&x, half, height, width);
        let position = MapPosition::new(half, self.grid, (height, width));
        let columns = self.net.graph.weight(
            "position.columns",
            &[1, half, 1, width],
            &position.columns(),
        )?;
        let rows =
            self.net
                .graph
                .weight("position.rows", &[1, half, height, 1], &position.rows())?;
        for term in [columns, rows] {
            x = self.net.graph.add(&x, &term);
        }
        let x = self.conv(
            &x,
            "scratch.output_conv2.0",
            [HIDDEN, half, 3],
            ConvShape::same(3),
        )?;
        let x = self.net.graph.relu(&x);
        let values = self.conv(
            &x,
            "scratch.output_conv2.2",
            [channels, HIDDEN, 1],
            ConvShape::same(1),
        )?;
        self.label(&values, "prelogits");
        Ok(values)
    }

    fn label(&mut self, value: &Value, name: impl std::fmt::Display) {
        self.net.graph.label(value, format!("{}.{name}", self.key));
    }

    fn load(&mut self, name: &str, shape: &[usize]) -> Result<Value, ExportError> {
        self.net.load(&format!("{}.{name}", self.key), shape)
    }

    /// `shape`: output channels, input channels, edge of the kernel.
    fn conv(
        &mut self,
        x: &Value,
        key: &str,
        shape: [usize; 3],
        window: ConvShape,
    ) -> Result<Value, ExportError> {
        let [output, input, kernel] = shape;
        let weight = self.load(&format!("{key}.weight"), &[output, input, kernel, kernel])?;
        let bias = self.load(&format!("{key}.bias"), &[output])?;
        Ok(self.net.graph.conv(x, &weight, Some(&bias), window))
    }

    fn enlarge(
        &mut self,
        x: &Value,
        key: &str,
        channels: usize,
        factor: usize,
    ) -> Result<Value, ExportError> {
        let weight = self.load(
            &format!("{key}.weight"),
            &[channels, channels, factor, factor],
        )?;
        let bias = self.load(&format!("{key}.bias"), &[channels])?;
        Ok(self
            .net
            .graph
            .conv_transpose(x, &weight, &bias, factor as i64))
    }
}

/// The fixed position embedding of a feature map: the first half of the channels depends on the column alone, the
/// second half on the row alone.
struct MapPosition {
    channels: usize,
    horizontal: Vec<Vec<f64>>,
    vertical: Vec<Vec<f64>>,
}

impl MapPosition {
    fn new(channels: usize, grid: PatchGrid, (height, width): Extent) -> Self {
        let aspect = grid.width() as f64 / grid.height() as f64;
        let diagonal = (aspect * aspect + 1.0).sqrt();
        Self {
            channels,
            horizontal: sinusoids(channels, width, aspect / diagonal),
            vertical: sinusoids(channels, height, 1.0 / diagonal),
        }
    }

    /// All channels at one place.
    fn at(&self, row: usize, column: usize) -> impl Iterator<Item = f64> {
        self.horizontal[column]
            .iter()
            .chain(&self.vertical[row])
            .copied()
    }

    /// The horizontal part, row-major [channels, width], zero in the channels of the vertical part.
    fn columns(&self) -> Vec<f32> {
        spread(&self.horizontal, self.channels, 0)
    }

    /// The vertical part, row-major [channels, height].
    fn rows(&self) -> Vec<f32> {
        spread(&self.vertical, self.channels, self.channels / 2)
    }
}

/// For each of `length` places between -reach and reach (at pixel centres): sines, then cosines of channels/4 angles.
fn sinusoids(channels: usize, length: usize, reach: f64) -> Vec<Vec<f64>> {
    let quarter = channels / 4;
    let end = reach * (length as f64 - 1.0) / length as f64;
    (0..length)
        .map(|i| {
            let place = if length == 1 {
                -end
            } else {
                -end + 2.0 * end * i as f64 / (length as f64 - 1.0)
            };
            let angle = |k: usize| place * 100f64.powf(-(k as f64) / quarter as f64);
            let sines = (0..quarter).map(|k| POSITION_SCALE * angle(k).sin());
            sines
                .chain((0..quarter).map(|k| POSITION_SCALE * angle(k).cos()))
                .collect()
        })
        .collect()
}

/// Values [length][n] to row-major [channels, length] with the n channels from `first` on filled.
fn spread(values: &[Vec<f64>], channels: usize, first: usize) -> Vec<f32> {
    let mut out = vec![0.0; channels * values.len()];
    for (i, column) in values.iter().enumerate() {
        for (k, &v) in column.iter().enumerate() {
            out[(first + k) * values.len() + i] = v as f32;
        }
    }
    out
}
