"""Clones that share a compile cache get their own code out of it, and never wait for each other."""

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = '[workspace]\nresolver = "3"\nmembers = ["crates/toy"]\n'
PACKAGE = '[package]\nname = "penstock-toy"\nversion = "0.1.0"\nedition = "2024"\n'


class Clones:
    """Workspaces of one small program each, with the project's scripts and one shared cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder / "the cache"

    def write(self, clone: str, says: str) -> None:
        root = self.folder / clone
        if not root.exists():
            shutil.copytree(ROOT / "scripts", root / "scripts")
            (root / "crates" / "toy" / "src").mkdir(parents=True)
            (root / "Cargo.toml").write_text(MANIFEST)
            (root / "crates" / "toy" / "Cargo.toml").write_text(PACKAGE)
        source = root / "crates" / "toy" / "src" / "main.rs"
        source.write_text(f'fn main() {{ println!("{says}"); }}\n')
        # Older than anything that gets compiled from now on: this is what misleads cargo.
        an_hour_ago = time.time() - 3600
        for path in [source, *root.rglob("Cargo.toml")]:
            os.utime(path, (an_hour_ago, an_hour_ago))

    def run(self, clone: str) -> subprocess.CompletedProcess[str]:
        removed = ("MAKE", "CARGO_", "RUSTFLAGS", "PENSTOCK_")
        outside = {name: value for name, value in os.environ.items() if not name.startswith(removed)}
        kept = {name: os.environ[name] for name in ("CARGO_HOME", "PENSTOCK_PYTHON") if name in os.environ}
        return subprocess.run(
            ["bash", "scripts/cargo.sh", "run", "--quiet"], cwd=self.folder / clone,
            env=outside | kept | {"PENSTOCK_CACHE": str(self.cache)},
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip


@pytest.fixture
def clones(tmp_path: Path) -> Clones:
    return Clones(tmp_path)


def test_each_clone_gets_its_own_code(clones: Clones) -> None:
    clones.write("first", "one")
    clones.write("second", "two")
    assert [clones.run(name).stdout for name in ("second", "first", "second")] == ["two\n", "one\n", "two\n"]
    clones.write("first", "three")
    assert [clones.run(name).stdout for name in ("first", "second")] == ["three\n", "two\n"]


def test_the_cache_is_shared(clones: Clones) -> None:
    clones.write("first", "one")
    clones.write("second", "one")
    for name in ("first", "second"):
        assert clones.run(name).stdout == "one\n"
    own = [(clones.folder / name / "target").exists() for name in ("first", "second")]
    # Without the command flock, as on macOS, nothing is shared.
    assert own == ([False, False] if shutil.which("flock") else [True, True])


def test_a_run_does_not_wait_for_another(clones: Clones) -> None:
    clones.write("first", "one")
    clones.cache.mkdir(exist_ok=True)
    with (clones.cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = clones.run("first")
    assert done.stdout == "one\n"
    assert (clones.folder / "first" / "target").exists()
    if shutil.which("flock"):
        assert "another run is compiling" in done.stderr
