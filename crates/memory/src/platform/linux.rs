//! Anonymous mappings of Linux, populated before they are handed out.

use std::path::Path;
use std::ptr::{self, NonNull};
use std::{fs, io};

use super::{HUGE_PAGE_BYTES, Usage, touch};

/// Maps zeroed bytes that start on a page; with `huge` on a huge page, and made of those if the kernel has any.
pub(super) fn map(bytes: usize, huge: bool) -> io::Result<NonNull<u8>> {
    let ptr = if huge { map_on_huge_page(bytes)? } else { map_anywhere(bytes)? };
    if let Err(error) = populate(ptr, bytes, huge) {
        // SAFETY: mapped above, with the same size, and not shared yet.
        unsafe { unmap(ptr, bytes) };
        return Err(error);
    }
    Ok(ptr)
}

fn map_anywhere(bytes: usize) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address of the kernel's choice: no memory in use is replaced.
    let ptr = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
    if ptr == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(ptr.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Maps one huge page more than needed, and unmaps the parts before and after the aligned range.
fn map_on_huge_page(bytes: usize) -> io::Result<NonNull<u8>> {
    let room = bytes.checked_add(HUGE_PAGE_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
    let start = map_anywhere(room)?;
    let before = start.addr().get().next_multiple_of(HUGE_PAGE_BYTES) - start.addr().get();
    // SAFETY: `before` is less than a huge page, and so is inside the mapping.
    let aligned = unsafe { start.add(before) };
    // SAFETY: `before + bytes` is less than `room`, so this is inside the mapping too.
    let end = unsafe { aligned.add(bytes) };
    // SAFETY: the part before belongs to the new mapping and is not used.
    unsafe { unmap(start, before) };
    // The kernel unmaps whole pages: a last page that partly belongs to the range stays.
    let behind = end.align_offset(page_bytes()).min(room - before - bytes);
    // SAFETY: at most at the end of the mapping, by the minimum above.
    let end = unsafe { end.add(behind) };
    // SAFETY: the part after belongs to the new mapping and is not used.
    unsafe { unmap(end, room - before - bytes - behind) };
    Ok(aligned)
}

/// Returns the bytes to the system.
///
/// # Safety
/// They were mapped by this file, start on a page, and are not used any more.
pub(super) unsafe fn unmap(ptr: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller vouches for the range. A failure has no remedy: the range would leak.
        unsafe { libc::munmap(ptr.as_ptr().cast(), bytes) };
    }
}

fn populate(ptr: NonNull<u8>, bytes: usize, huge: bool) -> io::Result<()> {
    if huge {
        // SAFETY: advice on a mapping of this file; its content stays. A kernel without huge pages refuses, and small
        // pages serve.
        unsafe { libc::madvise(ptr.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
    // SAFETY: as above: populating changes no content.
    if unsafe { libc::madvise(ptr.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::EFAULT | libc::EHWPOISON)) {
        return Err(error);
    }
    // Kernels before 5.14 do not know the advice, and a signal may interrupt it.
    // SAFETY: the mapping is new: zeroed, writable, and not shared yet.
    unsafe { touch(ptr, bytes) };
    Ok(())
}

fn configured(name: libc::c_int) -> Option<usize> {
    // SAFETY: reads a number about the system.
    let value = unsafe { libc::sysconf(name) };
    usize::try_from(value).ok().filter(|value| *value > 0)
}

fn page_bytes() -> usize {
    configured(libc::_SC_PAGESIZE).unwrap_or(super::PAGE_BYTES)
}

/// Returns the size of the second-level cache, where the C library knows it.
pub(super) fn l2_cache_bytes() -> Option<usize> {
    #[cfg(target_env = "gnu")]
    return configured(libc::_SC_LEVEL2_CACHE_SIZE);
    #[cfg(not(target_env = "gnu"))]
    return None;
}

/// Returns the memory of the machine, or the limit of the control group where that is lower.
pub(super) fn memory_bytes() -> Option<usize> {
    let physical = configured(libc::_SC_PHYS_PAGES)?.checked_mul(page_bytes())?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    Some(
        group_limit_bytes(Path::new("/sys/fs/cgroup"), &groups).map_or(physical, |limit| limit.min(physical)),
    )
}

/// Returns the lowest `memory.max` from the group of this process up to the root of version 2; each one binds.
fn group_limit_bytes(root: &Path, groups: &str) -> Option<usize> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Path::new(group)
        .ancestors()
        .filter_map(|group| fs::read_to_string(root.join(group).join("memory.max")).ok())
        .filter_map(|limit| limit.trim().parse().ok())
        .min()
}

/// Returns the CPU time of the calling thread.
pub(super) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the one struct that it is given.
    if unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } != 0 {
        return 0;
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the resources that this process has used.
pub(super) fn usage() -> Usage {
    // SAFETY: all zeros is a value of this struct of numbers.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call writes the one struct that it is given.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut used) };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    let pages = fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    Usage {
        cpu_ns: ns(used.ru_utime) + ns(used.ru_stime),
        minor_faults: used.ru_minflt as u64,
        major_faults: used.ru_majflt as u64,
        resident_bytes: pages.unwrap_or(0) * page_bytes() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_mappings_start_on_a_huge_page() {
        for bytes in [HUGE_PAGE_BYTES, 3 * HUGE_PAGE_BYTES, HUGE_PAGE_BYTES + 5000] {
            let ptr = map(bytes, true).unwrap();
            assert_eq!(ptr.addr().get() % HUGE_PAGE_BYTES, 0);
            // SAFETY: mapped above with the same size.
            unsafe { unmap(ptr, bytes) };
        }
    }

    #[test]
    fn every_page_is_there_at_once() {
        for (bytes, huge) in [(16 << 10, false), (4 << 20, true)] {
            let ptr = map(bytes, huge).unwrap();
            let mut present = vec![0_u8; bytes / page_bytes()];
            // SAFETY: asks about a mapping of this test, with a byte of room per page.
            let failed = unsafe { libc::mincore(ptr.as_ptr().cast(), bytes, present.as_mut_ptr()) };
            assert_eq!(failed, 0);
            assert!(present.iter().all(|page| page & 1 == 1));
            // SAFETY: mapped above with the same size.
            unsafe { unmap(ptr, bytes) };
        }
    }

    #[test]
    fn the_lowest_limit_of_the_group_and_its_parents_binds() {
        let root = std::env::temp_dir().join(format!("penstock-cgroup-{}", std::process::id()));
        fs::create_dir_all(root.join("outer/inner")).unwrap();
        fs::write(root.join("outer/memory.max"), "1048576\n").unwrap();
        fs::write(root.join("outer/inner/memory.max"), "max\n").unwrap();
        assert_eq!(group_limit_bytes(&root, "0::/outer/inner\n"), Some(1 << 20));
        fs::write(root.join("outer/inner/memory.max"), "4096\n").unwrap();
        assert_eq!(group_limit_bytes(&root, "1:memory:/old\n0::/outer/inner\n"), Some(4096));
        assert_eq!(group_limit_bytes(&root, "0::/\n"), None);
        assert_eq!(group_limit_bytes(&root, "1:memory:/old\n"), None);
        fs::remove_dir_all(root).unwrap();
    }
}
