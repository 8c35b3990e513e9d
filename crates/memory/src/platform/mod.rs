//! Calls to the operating system: no other module makes any.
//!
//! PLATFORM-1. A [`Mapping`] is the only owner of its bytes: no two mappings overlap, and the bytes do not move until
//!     it is dropped.
//! PLATFORM-2. Every byte is initialised, to zero at first, and every page is present before [`Mapping::new`] returns:
//!     a writer of rows never waits for the kernel to find a page.

#[cfg(target_os = "linux")]
mod linux;
mod portable;
mod usage;

use std::io;
use std::ptr::NonNull;

pub use usage::{Usage, thread_cpu_ns, usage};

/// The smallest page of any supported machine. Larger pages are touched more often than needed.
pub const PAGE_BYTES: usize = 4096;

/// A huge page. Mappings of that size or more can be made of huge pages.
pub const HUGE_PAGE_BYTES: usize = 2 << 20;

const DEFAULT_L2_CACHE_BYTES: usize = 512 << 10;

/// The way memory is obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// Linux: anonymous mappings, huge pages, pages populated in one call.
    #[cfg(target_os = "linux")]
    Linux,
    /// The allocator of the standard library, on any machine.
    Portable,
}

impl Platform {
    /// Returns the best one on this machine.
    pub const fn native() -> Self {
        #[cfg(target_os = "linux")]
        return Self::Linux;
        #[cfg(not(target_os = "linux"))]
        return Self::Portable;
    }

    /// Returns the size of a core's second-level cache, or a usual size where the machine does not report it.
    pub fn l2_cache_bytes(self) -> usize {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux => linux::l2_cache_bytes().unwrap_or(DEFAULT_L2_CACHE_BYTES),
            Self::Portable => DEFAULT_L2_CACHE_BYTES,
        }
    }

    /// Returns the memory available to this process: that of the machine, or the limit of the container.
    pub fn memory_bytes(self) -> Option<usize> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Linux => linux::memory_bytes(),
            Self::Portable => None,
        }
    }
}

/// Bytes from the operating system, returned when dropped.
#[derive(Debug)]
pub struct Mapping {
    ptr: NonNull<u8>,
    bytes: usize,
    platform: Platform,
}

// SAFETY: PLATFORM-1: the mapping is the only owner of its bytes, and no call here depends on the thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared mapping returns its address and size only; code that reads or writes there has its own argument.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps zeroed memory that starts on a page; with `huge` and enough bytes, on a huge page and made of huge pages.
    /// Huge pages are a preference: where the machine has none, small ones serve.
    pub fn new(platform: Platform, bytes: usize, huge: bool) -> io::Result<Self> {
        if bytes == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a mapping of no bytes"));
        }
        let huge = huge && bytes >= HUGE_PAGE_BYTES;
        let ptr = match platform {
            #[cfg(target_os = "linux")]
            Platform::Linux => linux::map(bytes, huge)?,
            Platform::Portable => portable::map(bytes, huge)?,
        };
        Ok(Self { ptr, bytes, platform })
    }

    /// Returns the start.
    pub fn as_ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// Returns the size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        match self.platform {
            #[cfg(target_os = "linux")]
            // SAFETY: `new` got the bytes from `linux::map`, and by PLATFORM-1 they have no other owner.
            Platform::Linux => unsafe { linux::unmap(self.ptr, self.bytes) },
            // SAFETY: `new` got the bytes from `portable::map`, and by PLATFORM-1 they have no other owner.
            Platform::Portable => unsafe { portable::unmap(self.ptr, self.bytes) },
        }
    }
}

/// Makes every page present, by writing the zero that is there already.
///
/// # Safety
/// The bytes are zero, valid for writes, and not shared.
unsafe fn touch(ptr: NonNull<u8>, bytes: usize) {
    for offset in (0..bytes).step_by(PAGE_BYTES) {
        // SAFETY: `offset` is below `bytes`, all of which the caller vouches for.
        let page = unsafe { ptr.add(offset) };
        // SAFETY: as above. Volatile, since a plain zero over a zero could be optimised away.
        unsafe { page.write_volatile(0) };
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    fn platforms() -> Vec<Platform> {
        if Platform::native() == Platform::Portable {
            vec![Platform::Portable]
        } else {
            vec![Platform::native(), Platform::Portable]
        }
    }

    #[test]
    fn memory_is_zeroed_aligned_and_writable() {
        for platform in platforms() {
            for (bytes, huge) in [(1, false), (4096, false), (20_000, true), (2 << 20, true), (6 << 20, true)]
            {
                let mapping = Mapping::new(platform, bytes, huge).unwrap();
                assert_eq!(mapping.bytes(), bytes);
                assert_eq!(mapping.as_ptr().addr().get() % PAGE_BYTES, 0);
                // SAFETY: only this test uses the mapping, which outlives the slice.
                let memory = unsafe { slice::from_raw_parts_mut(mapping.as_ptr().as_ptr(), bytes) };
                assert!(memory.iter().all(|byte| *byte == 0));
                memory.fill(7);
            }
        }
    }

    #[test]
    fn mappings_do_not_overlap() {
        for platform in platforms() {
            let mut all: Vec<_> =
                (0..50).map(|n| Mapping::new(platform, 4096 << (n % 3), n % 2 == 0).unwrap()).collect();
            all.sort_by_key(Mapping::as_ptr);
            for pair in all.windows(2) {
                assert!(pair[0].as_ptr().addr().get() + pair[0].bytes() <= pair[1].as_ptr().addr().get());
            }
        }
    }

    #[test]
    fn what_cannot_be_had_is_an_error() {
        for platform in platforms() {
            assert!(Mapping::new(platform, 0, false).is_err());
            assert!(Mapping::new(platform, usize::MAX, true).is_err());
            assert!(Mapping::new(platform, isize::MAX as usize - PAGE_BYTES, false).is_err());
        }
    }

    #[test]
    fn the_machine_is_described() {
        assert!(Platform::native().l2_cache_bytes() >= 64 << 10);
        assert_eq!(Platform::Portable.l2_cache_bytes(), 512 << 10);
        assert_eq!(Platform::Portable.memory_bytes(), None);
        #[cfg(target_os = "linux")]
        assert!(Platform::Linux.memory_bytes().unwrap() > 64 << 20);
    }
}
