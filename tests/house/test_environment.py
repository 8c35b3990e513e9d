"""`.venv` is made once, and made anew when the lock has changed or an install was interrupted."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with nothing to install, in a folder with spaces."""
    folder = tmp_path / "a clone"
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    (folder / "requirements").mkdir()
    for name in ("build.txt", "dev.txt"):
        (folder / "requirements" / name).write_text("# nothing\n")
    return folder


def make_environment(clone: Path) -> bool:
    """Whether the script made a new environment."""
    marker = clone / ".venv" / "marker"
    if marker.parent.exists():
        marker.touch()
    done = subprocess.run(
        ["bash", "scripts/environment.sh"], cwd=clone, env=os.environ | {"PENSTOCK_PYTHON": sys.executable},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (clone / ".venv" / "bin" / "python").exists()
    return not marker.exists()


def test_it_is_made_once_and_anew_when_it_must_be(clone: Path) -> None:
    assert make_environment(clone), "there was none"
    assert not make_environment(clone), "nothing has changed"
    (clone / ".venv" / ".made-from").unlink()
    assert make_environment(clone), "the install was interrupted"
    (clone / "requirements" / "dev.txt").write_text("# still nothing\n")
    assert make_environment(clone), "the lock has changed"


def test_a_failed_install_is_a_failure(clone: Path) -> None:
    (clone / "requirements" / "dev.txt").write_text("pip==0.0.0 --hash=sha256:" + "0" * 64 + "\n")
    done = subprocess.run(
        ["bash", "scripts/environment.sh"],
        cwd=clone, env=os.environ | {"PENSTOCK_PYTHON": sys.executable, "PIP_NO_INDEX": "1"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "FAILED" in done.stderr
    assert not (clone / ".venv" / ".made-from").exists()
