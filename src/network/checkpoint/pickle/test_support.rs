//! Writes pickles, good and bad, one instruction at a time.

pub struct Pickler(Vec<u8>);

impl Pickler {
    pub fn new() -> Self {
        Self(vec![0x80, 2])
    }

    pub fn op(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.0.extend_from_slice(bytes.as_ref());
        self
    }

    pub fn global(self, module: &str, name: &str) -> Self {
        self.op(format!("c{module}\n{name}\n"))
    }

    pub fn text(self, text: &str) -> Self {
        self.op(b"X").op((text.len() as u32).to_le_bytes()).op(text)
    }

    pub fn int(self, value: i64) -> Self {
        self.op([0x8a, 8]).op(value.to_le_bytes())
    }

    pub fn ints(self, values: &[i64]) -> Self {
        values
            .iter()
            .fold(self.op(b"("), |pickler, value| pickler.int(*value))
            .op(b"t")
    }

    pub fn storage(self, class: &str, key: &str, len: i64) -> Self {
        self.op(b"(")
            .text("storage")
            .global("torch", class)
            .text(key)
            .text("cpu")
            .int(len)
            .op(b"tQ")
    }

    /// A tensor of storage `key`, which holds `len` elements of `class`.
    pub fn tensor(self, class: &str, key: &str, len: i64, view: View<'_>) -> Self {
        self.global("torch._utils", "_rebuild_tensor_v2")
            .op(b"(")
            .storage(class, key, len)
            .int(view.offset)
            .ints(view.shape)
            .ints(view.strides)
            .op(b"\x89")
            .global("collections", "OrderedDict")
            .op(b")RtR")
    }

    pub fn stop(self) -> Vec<u8> {
        self.op(b".").into_bytes()
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[derive(Clone, Copy)]
pub struct View<'a> {
    pub offset: i64,
    pub shape: &'a [i64],
    pub strides: &'a [i64],
}
