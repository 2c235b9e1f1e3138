use proptest::prelude::*;

use super::test_support::{Pickler, View};
use super::*;
use crate::network::checkpoint::values::ElementType;

const VECTOR: View<'_> = View {
    offset: 0,
    shape: &[3],
    strides: &[1],
};

/// `{"w": tensor}` with the given storage length and view.
fn one_tensor(len: i64, view: View<'_>) -> Vec<u8> {
    Pickler::new()
        .op(b"}(")
        .text("w")
        .tensor("FloatStorage", "0", len, view)
        .op(b"u")
        .stop()
}

fn refusal(pickle: &[u8]) -> PickleError {
    state_dict(pickle).unwrap_err()
}

#[test]
fn a_state_dictionary_is_read() {
    let pickle = one_tensor(3, VECTOR);
    let tensors = state_dict(&pickle).unwrap();
    assert_eq!(tensors.keys().collect::<Vec<_>>(), [&"w"]);
    let tensor = &tensors["w"];
    assert_eq!((tensor.storage.key, tensor.storage.len), ("0", 3));
    assert_eq!(tensor.storage.element, ElementType::F32);
    assert_eq!((&tensor.shape, tensor.offset), (&vec![3], 0));
}

#[test]
fn the_model_entry_is_preferred_and_a_parameter_is_its_tensor() {
    let pickle = Pickler::new()
        .op(b"}(")
        .text("stray")
        .tensor("FloatStorage", "0", 3, VECTOR)
        .text("model")
        .op(b"}(")
        .text("w")
        .global("torch._utils", "_rebuild_parameter")
        .op(b"(")
        .tensor("HalfStorage", "1", 3, VECTOR)
        .op(b"\x88")
        .global("collections", "OrderedDict")
        .op(b")RtRuu")
        .stop();
    let tensors = state_dict(&pickle).unwrap();
    assert_eq!(tensors.keys().collect::<Vec<_>>(), [&"w"]);
    assert_eq!(tensors["w"].storage.element, ElementType::F16);
}

#[test]
fn names_of_anything_else_are_refused_before_they_could_be_called() {
    let call = |module, name| {
        Pickler::new()
            .global(module, name)
            .op(b"(")
            .text("touch hostile_pickle_was_run")
            .op(b"tR")
            .stop()
    };
    for (module, name) in [
        ("posix", "system"),
        ("builtins", "eval"),
        ("torch._utils", "_rebuild_anything"),
        ("torch", "load"),
        ("collections", "OrderedDict.fromkeys"),
        ("collections.abc", "OrderedDict"),
    ] {
        let expected = PickleError::RefusedGlobal(format!("{module}.{name}"));
        assert_eq!(refusal(&call(module, name)), expected);
        let by_stack = Pickler::new().text(module).text(name).op([0x93]).stop();
        assert_eq!(refusal(&by_stack), expected);
        let by_instance = Pickler::new().op(format!("(i{module}\n{name}\n")).stop();
        assert_eq!(refusal(&by_instance), expected);
    }
}

#[test]
fn names_are_printed_without_control_characters_and_cut_short() {
    let PickleError::RefusedGlobal(name) = refusal(
        &Pickler::new()
            .global("evil\x1b[2J", &"x".repeat(5000))
            .stop(),
    ) else {
        panic!("not refused by name");
    };
    assert!(
        name.starts_with("evil?[2J.xxx") && name.len() == 200,
        "{name}"
    );
}

#[test]
fn instructions_that_make_objects_are_refused() {
    for opcode in [0x81, 0x92, b'o', 0x82, b'P', 0x8f, 0x96, 0x97, 0xff] {
        let pickle = Pickler::new()
            .global("collections", "OrderedDict")
            .op([b')', opcode])
            .stop();
        let refused = PickleError::RefusedInstruction {
            opcode,
            position: 28,
        };
        assert_eq!(refusal(&pickle), refused);
    }
}

#[test]
fn tensors_stay_inside_their_storage() {
    let view = |offset, shape, strides| View {
        offset,
        shape,
        strides,
    };
    let out_of_storage: [(i64, View<'_>); 6] = [
        (2, VECTOR),
        (3, view(1, &[3], &[1])),
        (6, view(0, &[2, 3], &[4, 1])),
        (3, view(i64::MAX, &[3], &[1])),
        (3, view(0, &[i64::MAX, i64::MAX], &[1, 1])),
        (3, view(0, &[2, 2], &[i64::MAX, i64::MAX])),
    ];
    for (len, view) in out_of_storage {
        assert_eq!(refusal(&one_tensor(len, view)), PickleError::OutOfStorage);
    }
    assert_eq!(
        refusal(&one_tensor(1, view(0, &[1 << 40], &[0]))),
        PickleError::Expanded
    );
    for (len, view) in [
        (-1, VECTOR),
        (3, view(-1, &[3], &[1])),
        (3, view(0, &[-3], &[1])),
    ] {
        assert_eq!(
            refusal(&one_tensor(len, view)),
            PickleError::Unexpected("a size")
        );
    }
    // A step along a dimension of one is never taken.
    let pickle = one_tensor(3, view(0, &[1, 3], &[i64::MAX, 1]));
    assert_eq!(state_dict(&pickle).unwrap()["w"].shape, [1, 3]);
}

#[test]
fn integers_of_any_length_are_plain_data() {
    let huge = Pickler::new()
        .op(b"}(")
        .text("big")
        .op([0x8b])
        .op(100u32.to_le_bytes())
        .op([0x7f; 100])
        .text("small")
        .op([0x8a, 0])
        .text("w")
        .tensor("FloatStorage", "0", 3, VECTOR)
        .op(b"u")
        .stop();
    assert_eq!(state_dict(&huge).unwrap().len(), 1);
    let endless = Pickler::new().op([0x8b]).op(u32::MAX.to_le_bytes()).stop();
    assert_eq!(refusal(&endless), PickleError::Truncated);
    let size = Pickler::new().op([0x8a, 1, 0xff]).stop();
    assert_eq!(refusal(&size), PickleError::NoTensors);
}

#[test]
fn bombs_end_at_a_limit() {
    let deep = Pickler::new().op(vec![b']'; 2 << 20]).stop();
    assert_eq!(refusal(&deep), PickleError::Limit("objects"));
    let nested = Pickler::new().op(b"]").op([0x85].repeat(1_000_000)).stop();
    assert_eq!(refusal(&nested), PickleError::NoTensors);
    let doubled = Pickler::new().op(b"N").op(vec![b'2'; 2 << 20]).stop();
    assert_eq!(refusal(&doubled), PickleError::Limit("stack entries"));
    let marks = Pickler::new().op(vec![b'('; 2 << 20]).stop();
    assert_eq!(refusal(&marks), PickleError::Limit("open marks"));
    let idle = Pickler::new().op(b"N0".repeat(3 << 20)).stop();
    assert_eq!(refusal(&idle), PickleError::Limit("instructions"));
    let memo = (0..2u32 << 20).fold(Pickler::new().op(b"N"), |pickler, i| {
        pickler.op(b"r").op(i.to_le_bytes())
    });
    assert_eq!(
        refusal(&memo.stop()),
        PickleError::Limit("remembered values")
    );
    // Each tuple holds the one before twice: 2^64 leaves if it were ever walked.
    let laughs = (0..64).fold(Pickler::new().op(b"]"), |pickler, _| pickler.op(b"2\x86"));
    assert_eq!(refusal(&laughs.stop()), PickleError::NoTensors);
}

#[test]
fn a_dictionary_that_contains_itself_is_no_trouble() {
    let pickle = Pickler::new().op(b"}q\0(").text("model").op(b"h\0u").stop();
    assert_eq!(refusal(&pickle), PickleError::NoTensors);
}

#[test]
fn malformed_stacks_are_errors() {
    for instructions in [
        &b"."[..],
        b"0.",
        b"t.",
        b"\x86.",
        b"N\x86.",
        b"(N.",
        b"N(R.",
        b"NNs.",
        b"}(Nu.",
        b"NQ.",
        b"Nb.",
        b"h\x07.",
        b"Na.",
        b"X\x01\0\0\0\xff.",
        b"cposix",
    ] {
        let pickle = Pickler::new().op(instructions).into_bytes();
        assert!(state_dict(&pickle).is_err(), "{instructions:?}");
    }
}

#[test]
fn every_truncation_is_an_error() {
    let pickle = one_tensor(3, VECTOR);
    for length in 0..pickle.len() {
        assert!(state_dict(&pickle[..length]).is_err(), "{length}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn changed_bytes_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut pickle = one_tensor(3, VECTOR);
        for (index, byte) in changes {
            let index = index.index(pickle.len());
            pickle[index] = byte;
        }
        if let Ok(tensors) = state_dict(&pickle) {
            for tensor in tensors.values() {
                prop_assert!(tensor.shape.iter().product::<usize>() <= tensor.storage.len);
            }
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = state_dict(&bytes);
    }
}
