//! The stack machine. Instructions are those of Python's `pickletools`, protocols 2 to 5.

use super::PickleError;
use super::rebuild::{persistent, reduce};
use super::value::{Global, Heap, Object, Value, within_limit};

/// Most instructions of one pickle. The released checkpoint has about fifty thousand.
const MAX_INSTRUCTIONS: usize = 1 << 22;

pub(super) struct Machine<'a> {
    input: Input<'a>,
    heap: Heap<'a>,
    stack: Vec<Value>,
    /// Heights of the stack at the open marks.
    marks: Vec<usize>,
}

impl<'a> Machine<'a> {
    pub fn new(pickle: &'a [u8]) -> Self {
        Self {
            input: Input {
                bytes: pickle,
                position: 0,
            },
            heap: Heap::default(),
            stack: Vec::new(),
            marks: Vec::new(),
        }
    }

    /// Runs to the end: everything that was made, and the value it is about.
    pub fn run(mut self) -> Result<(Heap<'a>, Value), PickleError> {
        const STOP: u8 = b'.';
        for _ in 0..MAX_INSTRUCTIONS {
            let position = self.input.position;
            let opcode = self.input.byte()?;
            if opcode == STOP {
                let root = self.pop()?;
                return Ok((self.heap, root));
            }
            if !self.data(opcode)? && !self.container(opcode)? && !self.reference(opcode)? {
                return Err(PickleError::RefusedInstruction { opcode, position });
            }
        }
        Err(PickleError::Limit("instructions"))
    }

    /// Instructions that push plain data; false when the instruction is not one of them.
    fn data(&mut self, opcode: u8) -> Result<bool, PickleError> {
        let value = match opcode {
            b'N' | 0x88 | 0x89 => Value::Plain,
            b'J' => Value::Int(i32::from_le_bytes(self.input.array()?).into()),
            b'K' => Value::Int(self.input.byte()?.into()),
            b'M' => Value::Int(u16::from_le_bytes(self.input.array()?).into()),
            0x8a => self.integer(Length::One)?,
            0x8b => self.integer(Length::Four)?,
            b'G' => self.plain(8)?,
            b'X' | b'T' => self.text(Length::Four)?,
            0x8c | b'U' => self.text(Length::One)?,
            0x8d => self.text(Length::Eight)?,
            b'B' => self.bytes(Length::Four)?,
            b'C' => self.bytes(Length::One)?,
            0x8e => self.bytes(Length::Eight)?,
            _ => return Ok(false),
        };
        self.push(value)?;
        Ok(true)
    }

    /// Instructions that build tuples, lists and dictionaries.
    fn container(&mut self, opcode: u8) -> Result<bool, PickleError> {
        match opcode {
            b'(' => {
                within_limit(self.marks.len(), "open marks")?;
                self.marks.push(self.stack.len());
            }
            b')' => self.push_object(Object::Tuple(Vec::new()))?,
            0x85..=0x87 => {
                let items = self.pop_last(usize::from(opcode - 0x84))?;
                self.push_object(Object::Tuple(items))?;
            }
            b't' => {
                let items = self.pop_to_mark()?;
                self.push_object(Object::Tuple(items))?;
            }
            b']' => self.push_object(Object::List)?,
            b'l' => {
                self.pop_to_mark()?;
                self.push_object(Object::List)?;
            }
            b'a' => {
                self.pop()?;
                self.top_list()?;
            }
            b'e' => {
                self.pop_to_mark()?;
                self.top_list()?;
            }
            b'}' => self.push_object(Object::Dict(Vec::new()))?,
            b'd' => {
                let items = self.pop_to_mark()?;
                self.push_object(Object::Dict(Vec::new()))?;
                self.set_items(&items)?;
            }
            b's' => {
                let items = self.pop_last(2)?;
                self.set_items(&items)?;
            }
            b'u' => {
                let items = self.pop_to_mark()?;
                self.set_items(&items)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Instructions about names, calls, remembered values and the stack itself.
    fn reference(&mut self, opcode: u8) -> Result<bool, PickleError> {
        match opcode {
            // Protocol number and frame length say nothing that the bytes do not.
            0x80 => drop(self.input.take(1)?),
            0x95 => drop(self.input.take(8)?),
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_to_mark()?),
            b'2' => {
                let top = self.top()?;
                self.push(top)?;
            }
            b'c' | b'i' => {
                let (module, name) = (self.input.line()?, self.input.line()?);
                let global = Global::find(module, name)?;
                if opcode == b'i' {
                    return Ok(false);
                }
                self.push(Value::Global(global))?;
            }
            0x93 => {
                let [module, name] = self.pop_array()?;
                let global = Global::find(self.heap.text(module)?, self.heap.text(name)?)?;
                self.push(Value::Global(global))?;
            }
            b'R' => {
                let [callable, arguments] = self.pop_array()?;
                let result = reduce(&mut self.heap, callable, arguments)?;
                self.push(result)?;
            }
            b'b' => {
                // Attributes of a state dictionary (`_metadata`) carry no tensors.
                self.pop()?;
                let top = self.top()?;
                self.heap.dict(top)?;
            }
            b'Q' => {
                let id = self.pop()?;
                let storage = persistent(&mut self.heap, id)?;
                self.push(storage)?;
            }
            b'q' => {
                let index = self.input.byte()?.into();
                self.heap.remember(index, self.top()?)?;
            }
            b'r' => {
                let index = u32::from_le_bytes(self.input.array()?);
                self.heap.remember(index, self.top()?)?;
            }
            0x94 => self.heap.remember_next(self.top()?)?,
            b'h' => {
                let index = self.input.byte()?.into();
                self.push(self.heap.recall(index)?)?;
            }
            b'j' => {
                let index = u32::from_le_bytes(self.input.array()?);
                self.push(self.heap.recall(index)?)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn integer(&mut self, length: Length) -> Result<Value, PickleError> {
        let bytes = self.input.counted(length)?;
        // Two's complement, little endian, of any length.
        let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
        let mut extended = if negative { [0xff; 8] } else { [0; 8] };
        Ok(match extended.get_mut(..bytes.len()) {
            Some(low) => {
                low.copy_from_slice(bytes);
                Value::Int(i64::from_le_bytes(extended))
            }
            None => Value::Plain,
        })
    }

    fn text(&mut self, length: Length) -> Result<Value, PickleError> {
        let bytes = self.input.counted(length)?;
        let text = std::str::from_utf8(bytes).map_err(|_| PickleError::Unexpected("UTF-8 text"))?;
        self.heap.add(Object::Text(text))
    }

    fn bytes(&mut self, length: Length) -> Result<Value, PickleError> {
        self.input.counted(length)?;
        Ok(Value::Plain)
    }

    fn plain(&mut self, count: usize) -> Result<Value, PickleError> {
        self.input.take(count)?;
        Ok(Value::Plain)
    }

    fn push(&mut self, value: Value) -> Result<(), PickleError> {
        within_limit(self.stack.len(), "stack entries")?;
        self.stack.push(value);
        Ok(())
    }

    fn push_object(&mut self, object: Object<'a>) -> Result<(), PickleError> {
        let value = self.heap.add(object)?;
        self.push(value)
    }

    /// Values below the last mark belong to a container that is not finished yet.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<Value, PickleError> {
        match self.stack.last() {
            Some(value) if self.stack.len() > self.floor() => Ok(*value),
            _ => Err(PickleError::Unexpected("a value on the stack")),
        }
    }

    fn pop(&mut self) -> Result<Value, PickleError> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn pop_array<const N: usize>(&mut self) -> Result<[Value; N], PickleError> {
        let mut values = [Value::Plain; N];
        for value in values.iter_mut().rev() {
            *value = self.pop()?;
        }
        Ok(values)
    }

    fn pop_last(&mut self, count: usize) -> Result<Vec<Value>, PickleError> {
        let start = self.stack.len().checked_sub(count);
        match start.filter(|start| *start >= self.floor()) {
            Some(start) => Ok(self.stack.split_off(start)),
            None => Err(PickleError::Unexpected("a value on the stack")),
        }
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Value>, PickleError> {
        let start = self.marks.pop().ok_or(PickleError::Unexpected("a mark"))?;
        self.pop_last(self.stack.len().saturating_sub(start))
    }

    fn top_list(&self) -> Result<(), PickleError> {
        match self.heap.get(self.top()?) {
            Some(Object::List) => Ok(()),
            _ => Err(PickleError::Unexpected("a list")),
        }
    }

    fn set_items(&mut self, items: &[Value]) -> Result<(), PickleError> {
        let top = self.top()?;
        let Some(Object::Dict(dict)) = self.heap.get_mut(top) else {
            return Err(PickleError::Unexpected("a dictionary"));
        };
        let (pairs, rest) = items.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(PickleError::Unexpected("a value for every key"));
        }
        dict.extend(pairs.iter().map(|[key, value]| (*key, *value)));
        Ok(())
    }
}

/// Width in bytes of the length that precedes counted bytes.
#[derive(Clone, Copy)]
enum Length {
    One,
    Four,
    Eight,
}

struct Input<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], PickleError> {
        let end = self.position.checked_add(count);
        let taken = end.and_then(|end| self.bytes.get(self.position..end));
        let taken = taken.ok_or(PickleError::Truncated)?;
        self.position += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| PickleError::Truncated)
    }

    fn byte(&mut self) -> Result<u8, PickleError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    fn counted(&mut self, length: Length) -> Result<&'a [u8], PickleError> {
        let count = match length {
            Length::One => self.byte()?.into(),
            Length::Four => u32::from_le_bytes(self.array()?).into(),
            Length::Eight => u64::from_le_bytes(self.array()?),
        };
        self.take(usize::try_from(count).map_err(|_| PickleError::Truncated)?)
    }

    /// The text up to the next line feed, which is skipped.
    fn line(&mut self) -> Result<&'a str, PickleError> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let length = rest.iter().position(|byte| *byte == b'\n');
        let line = self.take(length.ok_or(PickleError::Truncated)?)?;
        self.take(1)?;
        std::str::from_utf8(line).map_err(|_| PickleError::Unexpected("UTF-8 text"))
    }
}
