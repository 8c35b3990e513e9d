//! Single kernels and operators, without an engine around them: `cargo bench -p penstock-benches --bench kernels`, with a
//! part of the names that are wanted behind `--`.
//!
//! One binary, since each is optimised across all crates when it is linked.

mod expressions;
mod join;
mod windows;
mod workloads;

criterion::criterion_main!(expressions::benches, join::benches, windows::benches, workloads::benches);
