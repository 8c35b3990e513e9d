//! Memory from the allocator of the standard library, on any machine.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;

use super::{PAGE_BYTES, touch};

fn layout(bytes: usize) -> io::Result<Layout> {
    Layout::from_size_align(bytes, PAGE_BYTES).map_err(|_| io::ErrorKind::OutOfMemory.into())
}

/// Allocates zeroed bytes that start on a page. `bytes` is above zero; the standard library knows no huge pages.
pub(super) fn map(bytes: usize, _huge: bool) -> io::Result<NonNull<u8>> {
    let layout = layout(bytes)?;
    // SAFETY: the layout has bytes: `Mapping::new` refuses to map none.
    let ptr = unsafe { alloc_zeroed(layout) };
    let ptr = NonNull::new(ptr).ok_or(io::ErrorKind::OutOfMemory)?;
    // SAFETY: the allocation above: zeroed, of that size, and not shared yet.
    unsafe { touch(ptr, bytes) };
    Ok(ptr)
}

/// Frees the bytes.
///
/// # Safety
/// They came from [`map`] with the same size, and are not used any more.
pub(super) unsafe fn unmap(ptr: NonNull<u8>, bytes: usize) {
    let Ok(layout) = layout(bytes) else { unreachable!("`map` made the same layout") };
    // SAFETY: the caller vouches that `map` allocated this with the same layout.
    unsafe { dealloc(ptr.as_ptr(), layout) };
}
