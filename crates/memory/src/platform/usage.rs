//! What the system reports about this process and this thread.

/// The resources that a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time of all threads, in the process and in the system on its behalf.
    pub cpu_ns: u64,
    /// Pages that were already present when first touched.
    pub minor_faults: u64,
    /// Pages that had to be read.
    pub major_faults: u64,
    /// Resident memory now.
    pub resident_bytes: u64,
}

/// Returns the CPU time of the calling thread; 0 where the system does not report it.
pub fn thread_cpu_ns() -> u64 {
    #[cfg(target_os = "linux")]
    return super::linux::thread_cpu_ns();
    #[cfg(not(target_os = "linux"))]
    return 0;
}

/// Returns the resources that this process has used; zeros where the system does not report them.
pub fn usage() -> Usage {
    #[cfg(target_os = "linux")]
    return super::linux::usage();
    #[cfg(not(target_os = "linux"))]
    return Usage::default();
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn work_takes_cpu_time() {
        let (before, thread_before) = (usage(), thread_cpu_ns());
        let mut sum = 0_u64;
        while thread_cpu_ns() < thread_before + 5_000_000 {
            sum = std::hint::black_box(sum + 1);
        }
        let after = usage();
        // The system accounts for the process in coarser steps than for the thread.
        assert!(after.cpu_ns >= before.cpu_ns);
        assert!(after.minor_faults >= before.minor_faults);
        assert!(after.resident_bytes > 1 << 20);
    }
}
