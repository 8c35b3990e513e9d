//! A pool of returned memory, by size.
//!
//! Sizes are powers of two, so that memory returned by one log fits another.

use crate::platform::{Mapping, PAGE_BYTES};

/// Returns the allocated size of memory of at least `bytes`: a power of two, a page or more.
///
/// # Panics
/// When there is no such power of two.
pub fn chunk_bytes(bytes: usize) -> usize {
    bytes
        .max(PAGE_BYTES)
        .checked_next_power_of_two()
        .expect("chunks are smaller than half of the address space")
}

fn class(bytes: usize) -> usize {
    debug_assert_eq!(bytes, chunk_bytes(bytes), "memory comes in sizes of chunk_bytes");
    (bytes / PAGE_BYTES).ilog2() as usize
}

/// Memory for reuse. The newest of a size is taken first: it is most likely in a cache.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// `classes[n]` holds those of `PAGE_BYTES << n` bytes.
    classes: Vec<Vec<Mapping>>,
    bytes: usize,
}

impl Pool {
    pub(super) fn put(&mut self, mapping: Mapping) {
        let class = class(mapping.bytes());
        if self.classes.len() <= class {
            self.classes.resize_with(class + 1, Vec::new);
        }
        self.bytes += mapping.bytes();
        self.classes[class].push(mapping);
    }

    pub(super) fn take(&mut self, bytes: usize) -> Option<Mapping> {
        let mapping = self.classes.get_mut(class(bytes))?.pop()?;
        self.bytes -= bytes;
        Some(mapping)
    }

    /// Takes out the excess over `limit` bytes, for the caller to drop. The largest go first, which takes the fewest
    /// calls.
    pub(super) fn trim(&mut self, limit: usize) -> Vec<Mapping> {
        let mut trimmed = Vec::new();
        for mappings in self.classes.iter_mut().rev() {
            while self.bytes > limit
                && let Some(mapping) = mappings.pop()
            {
                self.bytes -= mapping.bytes();
                trimmed.push(mapping);
            }
        }
        trimmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;

    fn mapping(bytes: usize) -> Mapping {
        Mapping::new(Platform::Portable, bytes, false).unwrap()
    }

    #[test]
    fn sizes_are_powers_of_two_from_a_page() {
        for (bytes, chunk) in [(0, 4096), (1, 4096), (4096, 4096), (4097, 8192), (16 << 10, 16 << 10)] {
            assert_eq!(chunk_bytes(bytes), chunk);
        }
    }

    #[test]
    fn gives_the_newest_of_the_size_asked_for() {
        let mut pool = Pool::default();
        assert!(pool.take(4096).is_none());
        let (first, second) = (mapping(8192), mapping(8192));
        let newest = second.as_ptr();
        pool.put(first);
        pool.put(second);
        assert!(pool.take(4096).is_none());
        assert!(pool.take(16384).is_none());
        assert_eq!(pool.take(8192).unwrap().as_ptr(), newest);
        assert_eq!(pool.bytes, 8192);
    }

    #[test]
    fn trims_the_largest_first_and_no_more_than_needed() {
        let mut pool = Pool::default();
        for bytes in [4096, 4096, 8192, 16384] {
            pool.put(mapping(bytes));
        }
        let sizes = |trimmed: Vec<Mapping>| trimmed.iter().map(Mapping::bytes).collect::<Vec<_>>();
        assert_eq!(sizes(pool.trim(32768)), [0; 0]);
        assert_eq!(sizes(pool.trim(16384)), [16384]);
        assert_eq!(sizes(pool.trim(6000)), [8192, 4096]);
        assert_eq!(sizes(pool.trim(0)), [4096]);
        assert_eq!(pool.bytes, 0);
    }
}
