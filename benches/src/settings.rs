//! What the environment asks for.

use std::env;
use std::path::{Path, PathBuf};

/// A number, written with or without underscores.
pub fn number(name: &str, default: u64) -> u64 {
    env::var(name).ok().and_then(|text| text.replace('_', "").parse().ok()).unwrap_or(default)
}

/// A path below the folder of the workspace, unless it is absolute. Cargo starts a bench in the folder of its package.
pub fn path(name: &str, default: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    root.join(env::var_os(name).map_or_else(|| PathBuf::from(default), PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_the_default() {
        assert_eq!(number("PENSTOCK_BENCH_NOT_SET", 7), 7);
        let default = path("PENSTOCK_BENCH_NOT_SET", "target/some.csv");
        assert!(default.is_absolute() && default.ends_with("target/some.csv"));
        assert!(default.parent().is_some_and(|target| target.with_file_name("Cargo.lock").exists()));
    }
}
