use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::*;
use crate::network::checkpoint::{CheckpointError, TensorSource};

const OFFICIAL_TENSORS: &str = include_str!("../../../tests/data/official_tensors.txt");

/// Shapes without values.
struct ShapesOnly(BTreeMap<String, Vec<usize>>);

impl TensorSource for ShapesOnly {
    fn shape(&self, name: &str) -> Option<&[usize]> {
        self.0.get(name).map(Vec::as_slice)
    }
    fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
    fn read_f32(&self, name: &str) -> Result<Vec<f32>, CheckpointError> {
        Err(CheckpointError::NoTensor(name.to_owned()))
    }
}

fn official_tensors() -> BTreeMap<String, Vec<usize>> {
    OFFICIAL_TENSORS
        .lines()
        .map(|line| {
            let (name, shape) = line.split_once(' ').unwrap();
            let shape = shape.split('x').map(|n| n.parse().unwrap()).collect();
            (name.to_owned(), shape)
        })
        .collect()
}

fn without_point_head(mut tensors: BTreeMap<String, Vec<usize>>) -> BTreeMap<String, Vec<usize>> {
    tensors.retain(|name, _| !name.starts_with("point_head."));
    tensors
}

fn expected(config: &NetworkConfig) -> BTreeMap<String, Vec<usize>> {
    let list = config.expected_tensors();
    let map: BTreeMap<_, _> = list.iter().cloned().collect();
    assert_eq!(map.len(), list.len(), "a name is listed twice");
    map
}

fn project_file(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn official_tensors_are_those_of_the_reference() {
    let mut with_point = official_tensors();
    assert_eq!(with_point.len(), 1404);
    assert_eq!(with_point.remove(MASK_TOKEN), Some(vec![1, 1024]));
    let mut config = NetworkConfig::official();
    config.enable_point = true;
    assert_eq!(expected(&config), with_point);
    config.enable_point = false;
    assert_eq!(expected(&config), without_point_head(with_point));
}

#[test]
fn official_sizes_are_valid_and_count_the_released_parameters() {
    let config = NetworkConfig::official();
    config.validate().unwrap();
    let values: usize = config
        .expected_tensors()
        .iter()
        .map(|(_, shape)| shape.iter().product::<usize>())
        .sum();
    assert_eq!(values + config.embed_dim, 1_157_943_540);
}

#[test]
fn official_checkpoint_infers_the_official_configuration() {
    let source = ShapesOnly(without_point_head(official_tensors()));
    assert_eq!(
        NetworkConfig::infer(&source).unwrap(),
        NetworkConfig::official()
    );
    let with_point = NetworkConfig::infer(&ShapesOnly(official_tensors())).unwrap();
    assert!(with_point.enable_point);
}

#[test]
fn inference_follows_the_position_embedding() {
    let mut tensors = official_tensors();
    let name = "aggregator.patch_embed.pos_embed";
    tensors.insert(name.to_owned(), vec![1, 1 + 16 * 16, 1024]);
    let config = NetworkConfig::infer(&ShapesOnly(tensors.clone())).unwrap();
    assert_eq!(config.img_size, 224);
    tensors.insert(name.to_owned(), vec![1, 200, 1024]);
    assert!(matches!(
        NetworkConfig::infer(&ShapesOnly(tensors)),
        Err(ConfigError::UnexpectedShape { name: found, .. }) if found == name
    ));
}

#[test]
fn other_sizes_are_not_guessed() {
    let golden = NetworkConfig::from_file(&project_file("tests/golden/config.json")).unwrap();
    let error = NetworkConfig::infer(&ShapesOnly(expected(&golden))).unwrap_err();
    assert!(
        matches!(&error, ConfigError::NotInferable { difference } if difference.contains("embed_dim 32")),
        "{error}"
    );
    let empty = NetworkConfig::infer(&ShapesOnly(BTreeMap::new())).unwrap_err();
    assert!(matches!(empty, ConfigError::MissingTensor(_)), "{empty}");
}

#[test]
fn configuration_files_of_the_project_are_read() {
    let golden = NetworkConfig::from_file(&project_file("tests/golden/config.json")).unwrap();
    assert_eq!(golden.fhw, [4, 6, 6]);
    assert_eq!((golden.window, golden.scale_frames), (4, 3));
    assert!(golden.enable_point && golden.demo.is_none());
    assert_eq!(golden.input_size(), None);
    let demo = NetworkConfig::from_file(&project_file("models/demo/config.json")).unwrap();
    assert_eq!(demo.input_size(), Some((84, 112)));
    let defaults = demo.demo.unwrap();
    assert_eq!((defaults.input_h, defaults.input_w), (Some(84), Some(112)));
    assert_eq!(defaults.metres_per_unit, Some(1.0));
}

#[test]
fn a_configuration_survives_serialisation() {
    for config in [
        NetworkConfig::official(),
        NetworkConfig::from_file(&project_file("models/demo/config.json")).unwrap(),
    ] {
        let text = serde_json::to_string(&config).unwrap();
        assert_eq!(
            serde_json::from_str::<NetworkConfig>(&text).unwrap(),
            config
        );
    }
}

#[test]
fn a_missing_size_and_an_unsupported_choice_are_named() {
    let golden = std::fs::read_to_string(project_file("tests/golden/config.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    for (from, to, expected) in [
        ("\"heads\"", "\"head\"", "missing field `heads`"),
        ("\"exp\"", "\"relu\"", "unknown variant `relu`"),
        (
            "\"camera_rope\": false",
            "\"camera_rope\": true",
            "camera_rope",
        ),
        ("\"embed_dim\": 32", "\"embed_dim\": -1", "invalid value"),
    ] {
        assert!(golden.contains(from));
        std::fs::write(&path, golden.replacen(from, to, 1)).unwrap();
        let error = NetworkConfig::from_file(&path).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn invalid_sizes_are_refused_by_name() {
    type Change = fn(&mut NetworkConfig);
    let changes: [(&str, Change); 14] = [
        ("head_dim", |c| c.head_dim = 60),
        ("heads", |c| c.heads = 0),
        ("fhw", |c| c.fhw = [20, 22, 24]),
        ("fhw", |c| c.fhw = [21, 21, 22]),
        ("fhw", |c| c.fhw = [usize::MAX, 1, 64]),
        ("selected", |c| c.selected = [4, 4, 17, 23]),
        ("selected", |c| c.selected = [4, 11, 17, 24]),
        ("embed_dim", |c| c.embed_dim = usize::MAX),
        ("img_size", |c| c.img_size = 519),
        ("dpt_out", |c| c.dpt_out[2] = 6),
        ("cam_heads", |c| c.cam_heads = 7),
        ("rope3d_theta", |c| c.rope3d_theta = f64::NAN),
        ("window", |c| c.window = 0),
        ("num_special_tokens", |c| c.num_special_tokens = 5),
    ];
    let mut refused = BTreeSet::new();
    for (name, change) in changes {
        let mut config = NetworkConfig::official();
        change(&mut config);
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(name), "{name}: {error}");
        refused.insert(name);
    }
    assert_eq!(refused.len(), 11);
}
