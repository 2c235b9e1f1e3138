//! Arguments that say what becomes a map and how.

use clap::Args;

use super::arguments::not_negative;
use crate::map::{PointFilter, VoxelMapConfig};

/// Which pixels are mapped and how their points are fused. Lengths are in the network's unit.
#[derive(Debug, Args)]
pub struct MapArguments {
    /// Depth less sure than this (from 1 on) is not mapped [default: 1.5]
    #[arg(long, value_name = "CONFIDENCE", value_parser = not_negative)]
    conf_threshold: Option<f32>,
    /// The least sure pixels of each frame are not mapped either: so many percent of them [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    conf_percentile: Option<f32>,
    /// Pixels whose depth differs from a neighbour's by more than this share are not mapped; 0: no pixel is an edge
    /// [default: 0.05]
    #[arg(long, value_name = "SHARE", value_parser = not_negative)]
    depth_edge: Option<f32>,
    /// What is farther away is not mapped; 0: everything is [default: 0]
    #[arg(long, value_name = "LENGTH", value_parser = not_negative)]
    max_depth: Option<f32>,
    /// Pixels of the network's picture that are not mapped along each side [default: 0]
    #[arg(long, value_name = "PIXELS")]
    border: Option<usize>,
    /// Edge of the cubes whose points are fused into one; 0: follows the scene [default: 0]
    #[arg(long, value_name = "LENGTH", value_parser = not_negative)]
    voxel_size: Option<f32>,
    /// Most points of the map; new ones take the place of seldom seen and old ones [default: 2000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_points: Option<u32>,
    /// Points seen by fewer frames are not part of the map [default: 2]
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..=1000))]
    min_observations: Option<u32>,
}

impl MapArguments {
    pub fn filter(&self) -> PointFilter {
        let default = PointFilter::default();
        let asked = |asked: Option<f32>, default: Option<f32>| match asked {
            Some(value) => (value > 0.0).then_some(value),
            None => default,
        };
        PointFilter {
            conf_threshold: self.conf_threshold.unwrap_or(default.conf_threshold),
            conf_percentile: self.conf_percentile.unwrap_or(default.conf_percentile),
            depth_edge: asked(self.depth_edge, default.depth_edge),
            max_depth: asked(self.max_depth, default.max_depth),
            border: self.border.unwrap_or(default.border),
        }
    }

    pub fn voxel(&self) -> VoxelMapConfig {
        let default = VoxelMapConfig::default();
        VoxelMapConfig {
            voxel_size: self.voxel_size.unwrap_or(default.voxel_size),
            max_points: (self.max_points).map_or(default.max_points, |points| points as usize),
            min_observations: self.min_observations.unwrap_or(default.min_observations),
        }
    }
}

fn percent(text: &str) -> Result<f32, String> {
    let value = not_negative(text).ok();
    value
        .filter(|value| *value <= 100.0)
        .ok_or_else(|| "a number from 0 to 100 is needed".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        map: MapArguments,
    }

    fn parse(text: &str) -> Result<MapArguments, clap::Error> {
        let line = std::iter::once("run").chain(text.split_whitespace());
        Line::try_parse_from(line).map(|line| line.map)
    }

    #[test]
    fn what_is_not_given_is_the_default() {
        let none = parse("").unwrap();
        assert_eq!(none.filter(), PointFilter::default());
        assert_eq!(none.voxel(), VoxelMapConfig::default());
    }

    #[test]
    fn every_setting_arrives() {
        let given = parse(
            "--conf-threshold 2 --conf-percentile 20 --depth-edge 0.3 --max-depth 9 --border 4 \
             --voxel-size 0.5 --max-points 77 --min-observations 5",
        );
        let given = given.unwrap();
        let filter = PointFilter {
            conf_threshold: 2.0,
            conf_percentile: 20.0,
            depth_edge: Some(0.3),
            max_depth: Some(9.0),
            border: 4,
        };
        assert_eq!(given.filter(), filter);
        let voxel = VoxelMapConfig {
            voxel_size: 0.5,
            max_points: 77,
            min_observations: 5,
        };
        assert_eq!(given.voxel(), voxel);
        let off = parse("--depth-edge 0 --max-depth 0").unwrap().filter();
        assert_eq!((off.depth_edge, off.max_depth), (None, None));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            "--conf-percentile 101",
            "--conf-threshold nan",
            "--depth-edge -0.1",
            "--max-depth inf",
            "--max-points 0",
            "--min-observations 0",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
