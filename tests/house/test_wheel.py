"""The wheel alone, in an environment with no Rust and no other package: the README must run there."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel() -> Path:
    named = os.environ.get("PENSTOCK_WHEEL")
    if named:
        return (ROOT / named).resolve()
    found = sorted((ROOT / "dist").glob("penstock-*.whl"), key=lambda path: path.stat().st_mtime)
    assert found, "no wheel in dist/: run `make wheel`"
    return found[-1]


@pytest.fixture(scope="module")
def clean_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that holds the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    python = folder / "bin" / "python"
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([str(python), *install], check=True, timeout=120, env=clean_environment(python))
    return python


def clean_environment(python: Path) -> dict[str, str]:
    """Only the new environment is on the PATH: Rust may well lie in a system folder."""
    path = str(python.parent)
    assert shutil.which("python", path=path) is not None
    assert [name for name in ("cargo", "rustc", "cc") if shutil.which(name, path=path)] == []
    return {"PATH": path, "HOME": str(python.parents[1]), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def run(python: Path, script: str) -> str:
    done = subprocess.run(
        [str(python), "-I", "-W", "error", "-c", script],
        cwd=python.parents[1], env=clean_environment(python),
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def readme_example() -> tuple[str, str]:
    """The first Python block of the README, and the text block behind it: what it prints."""
    text = (ROOT / "README.md").read_text()
    found = re.search(r"```python\n(.*?)```.*?```text\n(.*?)```", text, re.DOTALL)
    assert found is not None, "the README has no example with its output"
    return found[1], found[2]


def test_the_wheel_is_for_every_python_from_3_11_on(wheel: Path) -> None:
    name, version, python_tag, abi_tag, platform = wheel.name.removesuffix(".whl").split("-")
    assert (name, python_tag, abi_tag) == ("penstock", "cp311", "abi3")
    assert platform != "any"
    assert version == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_wheel_holds_types_stubs_and_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ["penstock/py.typed", "penstock/_penstock.pyi", "penstock/spark/log4j2.properties"]:
        assert wanted in names
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert [name for name in names if name.endswith((".rs", ".pyc"))] == []


def test_the_wheel_needs_no_other_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as content:
        metadata = next(name for name in content.namelist() if name.endswith(".dist-info/METADATA"))
        required = [
            line for line in content.read(metadata).decode().splitlines() if line.startswith("Requires-Dist:")
        ]
    assert required
    assert all("extra ==" in line for line in required)


def test_nothing_else_is_installed(clean_python: Path) -> None:
    script = (
        "import importlib.util as u; print([n for n in ('pyarrow', 'pandas', 'pyspark') if u.find_spec(n)])"
    )
    assert run(clean_python, script) == "[]\n"


def test_the_readme_runs_with_the_wheel_alone(clean_python: Path) -> None:
    code, output = readme_example()
    assert run(clean_python, code) == output


def test_penstock_spark_says_what_it_needs(clean_python: Path) -> None:
    script = """
try:
    import penstock.spark
except ImportError as error:
    print(error)
"""
    assert "pip install 'penstock[spark]'" in run(clean_python, script)


def test_import_opens_no_connection(clean_python: Path) -> None:
    script = """
import sys
def watch(event, args):
    if event.startswith(("socket.", "urllib.", "http.")):
        raise SystemExit(f"{event} at import")
sys.addaudithook(watch)
import penstock
print("quiet")
"""
    assert run(clean_python, script) == "quiet\n"
