use std::io::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::pickle::test_support::{Pickler, View};
use super::*;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn open(name: &str) -> Checkpoint {
    Checkpoint::open(&data(name)).unwrap()
}

fn refusal(path: &Path) -> String {
    match Checkpoint::open(path) {
        Ok(_) => panic!("{} was opened", path.display()),
        Err(error) => error.to_string(),
    }
}

/// Writes bytes to a file of their own, which lives as long as the result.
fn file(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn archive(entries: &[(&str, &[u8])], method: CompressionMethod) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        let options = SimpleFileOptions::default().compression_method(method);
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// `{"w": tensor}` of 2 by 3 floats in storage `0`.
fn pickle() -> Vec<u8> {
    Pickler::new()
        .op(b"}(")
        .text("w")
        .tensor(
            "FloatStorage",
            "0",
            6,
            View {
                offset: 0,
                shape: &[2, 3],
                strides: &[3, 1],
            },
        )
        .op(b"u")
        .stop()
}

const FLOATS: [f32; 6] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];

fn stored(entries: &[(&str, &[u8])]) -> tempfile::NamedTempFile {
    file(&archive(entries, CompressionMethod::Stored))
}

#[test]
fn a_state_dictionary_saved_by_pytorch_is_read() {
    let checkpoint = open("tests/data/linear.pt");
    assert_eq!(checkpoint.names(), ["bias", "weight"]);
    assert_eq!(checkpoint.shape("weight"), Some(&[2, 3][..]));
    let expected = [-0.5, -0.25, 0.0, 0.25, 0.5, 0.75];
    assert_eq!(checkpoint.read_f32("weight").unwrap(), expected);
    assert_eq!(checkpoint.read_f32("bias").unwrap(), [1.5, -2.0]);
    let missing = checkpoint.read_f32("nothing").unwrap_err();
    assert!(matches!(missing, CheckpointError::NoTensor(name) if name == "nothing"));
}

#[test]
fn every_kind_of_tensor_pytorch_saves_is_read() {
    let checkpoint = open("tests/data/nested.pt");
    let transposed = [0.0, 4.0, 8.0, 1.0, 5.0, 9.0, 2.0, 6.0, 10.0, 3.0, 7.0, 11.0];
    let tail: Vec<f32> = (12..20).map(|i| i as f32).collect();
    let expected: [(&str, &[usize], &[f32]); 8] = [
        ("weight", &[2, 3], &[-0.5, -0.25, 0.0, 0.25, 0.5, 0.75]),
        ("bias", &[2], &[1.5, -2.0]),
        ("wide", &[2], &[1.0, -0.5]),
        ("brain", &[1, 2], &[2.0, -3.0]),
        ("shared_tail", &[2, 4], &tail),
        ("transposed", &[4, 3], &transposed),
        ("scalar", &[], &[7.25]),
        ("empty", &[0, 5], &[]),
    ];
    for (name, shape, values) in expected {
        assert_eq!(checkpoint.shape(name), Some(shape), "{name}");
        assert_eq!(checkpoint.read_f32(name).unwrap(), values, "{name}");
    }
    assert_eq!(checkpoint.names().len(), 9);
    let steps = checkpoint.read_f32("steps").unwrap_err().to_string();
    assert_eq!(
        steps,
        "tensor `steps` is stored as int64, expected floating point"
    );
}

#[test]
fn code_in_a_checkpoint_is_refused_by_name() {
    let text = refusal(&data("tests/data/hostile.pt"));
    assert!(text.contains("`posix.system`"), "{text}");
    assert!(!Path::new("hostile_pickle_was_run").exists());
}

#[test]
fn the_projects_safetensors_files_fit_their_configurations() {
    for (weights, config) in [
        (
            "tests/golden/weights.safetensors",
            "tests/golden/config.json",
        ),
        ("models/demo/weights.safetensors", "models/demo/config.json"),
    ] {
        let checkpoint = open(weights);
        let config = NetworkConfig::from_file(&data(config)).unwrap();
        let report = checkpoint.check(&config);
        assert_eq!(report, TensorReport::default(), "{weights}");
        for (name, shape) in config.expected_tensors() {
            let values = checkpoint.read_f32(&name).unwrap();
            assert_eq!(values.len(), shape.iter().product::<usize>(), "{name}");
            assert!(values.iter().all(|value| value.is_finite()), "{name}");
        }
    }
}

#[test]
fn values_are_those_that_the_safetensors_crate_reads() {
    let path = data("tests/golden/weights.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    let theirs = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let ours = Checkpoint::open(&path).unwrap();
    assert_eq!(ours.names().len(), theirs.len());
    for (name, view) in theirs.iter() {
        let expected: Vec<f32> = view
            .data()
            .as_chunks::<4>()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        assert_eq!(ours.read_f32(name).unwrap(), expected, "{name}");
    }
}

#[test]
fn a_big_endian_archive_is_read() {
    let big: Vec<u8> = FLOATS
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect();
    let pickle = pickle();
    let entries: [(&str, &[u8]); 3] = [
        ("a/data.pkl", &pickle),
        ("a/byteorder", b"big"),
        ("a/data/0", &big),
    ];
    let saved = stored(&entries);
    let checkpoint = Checkpoint::open(saved.path()).unwrap();
    assert_eq!(checkpoint.read_f32("w").unwrap(), FLOATS);
    let odd = stored(&[entries[0], ("a/byteorder", b"middle"), entries[2]]);
    assert!(refusal(odd.path()).contains("byte order"));
}

#[test]
fn storages_that_do_not_hold_their_tensor_are_refused() {
    let pickle = pickle();
    let short = [0; 20];
    type Entries<'a> = &'a [(&'a str, &'a [u8])];
    let cases: [(Entries<'_>, &str); 4] = [
        (
            &[("a/data.pkl", &pickle)],
            "entry `a/data/0`: the archive has no such entry",
        ),
        (
            &[("a/data.pkl", &pickle), ("a/data/0", &short)],
            "entry `a/data/0`: it has 20 bytes",
        ),
        (&[("a/other", &pickle)], "without `*/data.pkl`"),
        (
            &[("a/data.pkl", &pickle), ("b/data.pkl", &pickle)],
            "several `*/data.pkl`",
        ),
    ];
    for (entries, expected) in cases {
        let text = refusal(stored(entries).path());
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn compressed_entries_are_refused() {
    let pickle = pickle();
    // A storage of this kind could unpack to a thousand times its size.
    let entries: [(&str, &[u8]); 2] = [("a/data.pkl", &pickle), ("a/data/0", &[0; 24])];
    let saved = file(&archive(&entries, CompressionMethod::Deflated));
    let text = refusal(saved.path());
    assert!(text.contains("compressed"), "{text}");
}

#[test]
fn a_damaged_storage_fails_its_checksum() {
    let pickle = pickle();
    let marker = [0xab; 24];
    let mut bytes = archive(
        &[("a/data.pkl", &pickle), ("a/data/0", &marker)],
        CompressionMethod::Stored,
    );
    let start = bytes
        .windows(24)
        .position(|window| window == marker)
        .unwrap();
    bytes[start + 5] ^= 1;
    let saved = file(&bytes);
    let checkpoint = Checkpoint::open(saved.path()).unwrap();
    let text = checkpoint.read_f32("w").unwrap_err().to_string();
    assert!(text.contains("`w`") && text.contains("checksum"), "{text}");
}

#[test]
fn other_files_are_told_apart() {
    let legacy = refusal(&data("tests/data/legacy.pt"));
    assert!(legacy.contains("before version 1.6"), "{legacy}");
    for bytes in [&b""[..], b"PK", b"not a checkpoint", b"\x89PNG\r\n\x1a\n{"] {
        let text = refusal(file(bytes).path());
        let expected = ["neither a PyTorch", "not a safetensors file"];
        assert!(expected.iter().any(|known| text.contains(known)), "{text}");
    }
    let absent = refusal(Path::new("/nonexistent/model.pt"));
    assert!(absent.contains("/nonexistent/model.pt"), "{absent}");
}

#[test]
fn every_truncation_of_a_file_is_an_error() {
    for name in ["tests/data/linear.pt", "tests/golden/weights.safetensors"] {
        let bytes = std::fs::read(data(name)).unwrap();
        for part in 0..100 {
            let cut = bytes.len() * part / 100;
            refusal(file(&bytes[..cut]).path());
        }
        refusal(file(&bytes[..bytes.len() - 1]).path());
    }
}

#[test]
fn safetensors_headers_are_checked() {
    let with_header = |header: &str, data: usize| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        file(&bytes)
    };
    let cases = [
        (
            r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#,
            4,
        ),
        (
            r#"{"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#,
            8,
        ),
        (
            r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}"#,
            12,
        ),
        (
            r#"{"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}"#,
            0,
        ),
        (
            r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#,
            8,
        ),
        (
            r#"{"w":{"dtype":"X9","shape":[2],"data_offsets":[0,8]}}"#,
            8,
        ),
        (r#"{"w":"#, 0),
    ];
    for (header, data) in cases {
        let text = refusal(with_header(header, data).path());
        assert!(text.contains("not a safetensors file"), "{text}");
    }
    let mut endless = u64::MAX.to_le_bytes().to_vec();
    endless.push(b'{');
    assert!(refusal(file(&endless).path()).contains("header is too large"));
    let deep = format!("{}{}", r#"{"w":"#, "[".repeat(100_000));
    refusal(with_header(&deep, 0).path());
    let ok = with_header(
        r#"{"w":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}"#,
        8,
    );
    let error = Checkpoint::open(ok.path())
        .unwrap()
        .read_f32("w")
        .unwrap_err();
    assert!(
        matches!(error, CheckpointError::ElementType { .. }),
        "{error}"
    );
}

/// Opens and reads whatever comes of changed bytes: an error is fine, a panic is not.
fn survive(mut bytes: Vec<u8>, changes: &[(prop::sample::Index, u8)], within: usize) {
    for (index, byte) in changes {
        let index = index.index(within.min(bytes.len()));
        bytes[index] = *byte;
    }
    let saved = file(&bytes);
    if let Ok(checkpoint) = Checkpoint::open(saved.path()) {
        for name in checkpoint.names() {
            if let Ok(values) = checkpoint.read_f32(name) {
                assert!(values.len() <= bytes.len());
            }
        }
    }
}

fn changes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn changed_bytes_of_an_archive_never_panic(changes in changes()) {
        let bytes = std::fs::read(data("tests/data/nested.pt")).unwrap();
        survive(bytes, &changes, usize::MAX);
    }

    #[test]
    fn changed_bytes_of_a_header_never_panic(changes in changes()) {
        let header = r#"{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        let within = bytes.len();
        bytes.resize(within + 14, 0);
        survive(bytes, &changes, within);
    }
}
