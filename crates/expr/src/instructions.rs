//! What the kernels assume of the instructions that they are compiled for.

/// True if the processor, as far as the compiler knows, has an instruction that compares several wide integers.
/// Baseline x86-64 has none, and there the sign of a difference is faster than what the compiler generates for a
/// comparison.
pub(crate) const COMPARES_WIDE: bool = cfg!(not(target_arch = "x86_64")) || cfg!(target_feature = "sse4.2");

/// Rows whose answers are computed together: a constant number of them lets the compiler do without a loop for single
/// rows. The best number depends on the instructions that the compiler may assume.
pub(crate) const ASKED: usize = if COMPARES_WIDE { 8 } else { 16 };
