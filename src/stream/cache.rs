//! The memory behind the caches: one arena per key and per value buffer.

use super::layout::RowMove;
use crate::network::inputs::{CacheNames, cache_output};
use crate::runtime::Binding;

/// The system has no memory for a larger arena; the caches are as they were.
#[derive(Debug, thiserror::Error)]
#[error("no memory for a cache arena of {bytes} bytes")]
pub struct CacheError {
    pub bytes: usize,
}

/// Rows of equal width in one allocation. New rows are zero and take no memory before they are written.
struct Arena {
    data: Box<[f32]>,
    width: usize,
}

impl Arena {
    fn new(rows: usize, width: usize) -> Result<Self, CacheError> {
        let error = CacheError {
            bytes: rows.saturating_mul(width).saturating_mul(size_of::<f32>()),
        };
        let len = rows.checked_mul(width).ok_or(CacheError { ..error })?;
        match bytemuck::allocation::try_zeroed_slice_box(len) {
            Ok(data) => Ok(Self { data, width }),
            Err(()) => Err(error),
        }
    }

    /// Moves the first `used` rows to an arena of `rows` rows.
    fn grow(&mut self, rows: usize, used: usize) -> Result<(), CacheError> {
        let mut larger = Self::new(rows, self.width)?;
        let used = used * self.width;
        larger.data[..used].copy_from_slice(&self.data[..used]);
        *self = larger;
        Ok(())
    }
}

struct Buffer {
    input: String,
    output: String,
    arena: Arena,
}

/// Key and value caches that share one row count and are written at one row.
///
/// Addresses and capacity stay put until [`KvCache::reserve`] has to move the rows to a larger segment; it moves one
/// buffer at a time, so that a move needs room for one buffer more, not for a second cache.
pub struct KvCache {
    buffers: Vec<Buffer>,
    capacity: usize,
    moves: usize,
}

/// Size and use of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Rows allocated in each buffer.
    pub capacity: usize,
    /// Rows in use in each buffer.
    pub valid: usize,
    /// Bytes allocated over all buffers.
    pub bytes: usize,
    /// How often the rows moved to a larger segment.
    pub moves: usize,
}

impl KvCache {
    /// Buffers of `capacity` rows of `width` values for each pair of names.
    pub fn new(names: &[CacheNames], width: usize, capacity: usize) -> Result<Self, CacheError> {
        let mut buffers = Vec::with_capacity(2 * names.len());
        for name in names.iter().flat_map(|(key, value)| [key, value]) {
            let arena = Arena::new(capacity, width)?;
            buffers.push(Buffer {
                input: name.clone(),
                output: cache_output(name),
                arena,
            });
        }
        Ok(Self {
            buffers,
            capacity,
            moves: 0,
        })
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes room for `rows` rows, of which the first `used` are kept; `next` is the capacity to move to when there is
    /// not enough. On an error all rows are where they were, in arenas of either size.
    pub fn reserve(&mut self, rows: usize, used: usize, next: usize) -> Result<(), CacheError> {
        if rows <= self.capacity {
            return Ok(());
        }
        for buffer in &mut self.buffers {
            buffer.arena.grow(next.max(rows), used)?;
        }
        self.capacity = next.max(rows);
        self.moves += 1;
        Ok(())
    }

    /// Moves rows within every buffer, in the order given.
    pub fn apply(&mut self, moves: &[RowMove]) {
        for Buffer {
            arena: Arena { data, width },
            ..
        } in &mut self.buffers
        {
            let width = *width;
            for change in moves {
                match *change {
                    RowMove::Copy { from, to, rows } => {
                        data.copy_within(from * width..(from + rows) * width, to * width);
                    }
                    RowMove::Exchange { a, b, rows } => {
                        let (low, high) = data.split_at_mut(a.max(b) * width);
                        let low = &mut low[a.min(b) * width..][..rows * width];
                        low.swap_with_slice(&mut high[..rows * width]);
                    }
                }
            }
        }
    }

    /// Binds the first rows of every buffer, as many as `shape` [1, rows, width] says, as input and output of a run.
    pub fn bind<'a>(&'a mut self, shape: &'a [usize; 3]) -> impl Iterator<Item = Binding<'a>> {
        let len = shape[1] * shape[2];
        self.buffers.iter_mut().map(move |buffer| Binding::InPlace {
            input: &buffer.input,
            output: &buffer.output,
            shape,
            data: &mut buffer.arena.data[..len],
        })
    }

    /// One row of the cache that a graph knows as `name`.
    pub fn row(&self, name: &str, row: usize) -> Option<&[f32]> {
        let Arena { data, width } = &self
            .buffers
            .iter()
            .find(|buffer| buffer.input == name)?
            .arena;
        data.get(row * width..(row + 1) * width)
    }

    pub fn status(&self, valid: usize) -> CacheStatus {
        let values: usize = self
            .buffers
            .iter()
            .map(|buffer| buffer.arena.data.len())
            .sum();
        CacheStatus {
            capacity: self.capacity,
            valid,
            bytes: values * size_of::<f32>(),
            moves: self.moves,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> KvCache {
        KvCache::new(&[("k".into(), "v".into())], 2, 3).unwrap()
    }

    #[test]
    fn growing_keeps_the_used_rows_and_counts_the_move() {
        let mut cache = cache();
        for binding in cache.bind(&[1, 3, 2]) {
            let Binding::InPlace { data, .. } = binding else {
                panic!("caches are bound in place")
            };
            data.copy_from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        }
        cache.reserve(3, 3, 8).unwrap();
        assert_eq!(
            cache.status(3),
            CacheStatus {
                capacity: 3,
                valid: 3,
                bytes: 48,
                moves: 0
            }
        );
        cache.reserve(4, 3, 8).unwrap();
        assert_eq!(
            cache.status(3),
            CacheStatus {
                capacity: 8,
                valid: 3,
                bytes: 128,
                moves: 1
            }
        );
        assert_eq!(cache.row("v", 2), Some(&[5.0, 6.0][..]));
        assert_eq!(cache.row("v", 3), Some(&[0.0, 0.0][..]));
        cache.apply(&[
            RowMove::Copy {
                from: 0,
                to: 6,
                rows: 2,
            },
            RowMove::Exchange {
                a: 6,
                b: 1,
                rows: 2,
            },
        ]);
        assert_eq!(cache.row("k", 7), Some(&[5.0, 6.0][..]));
        assert_eq!(cache.row("k", 1), Some(&[1.0, 2.0][..]));
        assert_eq!(cache.row("k", 2), Some(&[3.0, 4.0][..]));
    }

    #[test]
    fn an_arena_that_cannot_be_had_is_an_error_and_loses_nothing() {
        let mut cache = cache();
        assert!(cache.reserve(usize::MAX, 3, 0).is_err());
        assert_eq!(cache.capacity(), 3);
        assert_eq!(cache.status(0).moves, 0);
    }
}
