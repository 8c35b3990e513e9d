"""The commands: what `make` prints, what the tool check says, and folders with spaces in their names."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = ["demo", "spark", "check", "test", "soak", "wheel", "bench", "lint", "format", "lock", "clean"]


def run(*command: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    # MAKEFLAGS and MAKELEVEL are those of the `make test` that runs this.
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        command, cwd=cwd, env=outside | environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """A PATH with what the scripts themselves call, and none of the tools they look for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ["bash", "dirname", "sed", "sort", "head"]:
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)


def fake_tool(folder: str, name: str, script: str) -> None:
    path = Path(folder, name)
    path.write_text(f"#!{shutil.which('bash')}\n{script}\n")
    path.chmod(0o755)


def test_make_alone_prints_every_command() -> None:
    done = run("make")
    assert done.returncode == 0, done.stderr
    listed = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert set(COMMANDS) <= set(listed)
    assert listed == list(dict.fromkeys(listed))


def test_every_command_has_its_recipe() -> None:
    listed = [line.split()[0] for line in run("make").stdout.splitlines() if line.startswith("  ")]
    assert listed
    for command in listed:
        done = run("make", "--dry-run", command)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        assert done.stdout.strip(), command


def test_all_missing_tools_are_named_at_once(bare_path: str) -> None:
    done = run(
        "bash", "scripts/tools.sh", "python", "rust", "rust-lint", "cc", "java",
        PATH=bare_path, PENSTOCK_PYTHON="python3", JAVA_HOME="",
    )  # fmt: skip
    assert done.returncode == 1
    for words in [
        "Python 3.11",
        "'cargo' was not found",
        "C compiler",
        "Java 17",
        "rustup",
        "apt-get install",
    ]:
        assert words in done.stderr
    assert done.stdout == ""


def test_java_is_asked_for_only_where_spark_is_needed(bare_path: str) -> None:
    done = run("bash", "scripts/tools.sh", "python", "rust", "cc", PATH=bare_path, JAVA_HOME="")
    assert done.returncode == 1
    assert "Java" not in done.stderr
    recipes = {
        name: run("make", "--dry-run", name).stdout
        for name in ("wheel", "lint", "demo", "spark", "test-spark", "test")
    }
    asks = {name for name, recipe in recipes.items() if "java" in recipe}
    assert asks == {"demo", "spark", "test-spark", "test"}


def test_old_versions_are_named(bare_path: str) -> None:
    fake_tool(bare_path, "python3", 'case "$2" in *print*) echo 3.9 ;; *) exit 1 ;; esac')
    fake_tool(bare_path, "cargo", "echo cargo 1.70.0")
    fake_tool(bare_path, "rustc", "echo 'rustc 1.70.0 (90c541806 2023-05-31)'")
    fake_tool(bare_path, "java", "echo 'openjdk version \"1.8.0_402\"' >&2")
    done = run(
        "bash", "scripts/tools.sh", "python", "rust", "java",
        PATH=bare_path, PENSTOCK_PYTHON="python3", JAVA_HOME="",
    )  # fmt: skip
    assert done.returncode == 1
    for words in ["Python 3.9, which is too old", "Rust 1.70, which is too old", "Java 8, which is too old"]:
        assert words in done.stderr


def test_a_python_without_venv_is_named(bare_path: str) -> None:
    fake_tool(bare_path, "python3", 'case "$2" in *print*) echo 3.11 ;; *venv*) exit 1 ;; esac')
    done = run("bash", "scripts/tools.sh", "python", PATH=bare_path, PENSTOCK_PYTHON="python3")
    assert done.returncode == 1
    assert "cannot make virtual environments" in done.stderr


def test_nothing_is_said_when_nothing_is_missing() -> None:
    done = run("bash", "scripts/tools.sh", "python", "rust", "cc")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_commands_work_in_a_folder_with_spaces(tmp_path: Path) -> None:
    clone = tmp_path / "a clone with spaces"
    clone.mkdir()
    shutil.copy(ROOT / "Makefile", clone)
    shutil.copy(ROOT / "Cargo.toml", clone)
    shutil.copytree(ROOT / "scripts", clone / "scripts")
    assert "demo" in run("make", cwd=clone).stdout
    dry = run("make", "--dry-run", "test", cwd=clone)
    assert dry.returncode == 0, dry.stderr
    assert "test-suites.sh test" in dry.stdout
    checked = run("make", "tools", cwd=clone)
    assert checked.returncode == 0, checked.stderr


def test_a_phase_passes_on_the_exit_code(tmp_path: Path) -> None:
    script = str(ROOT / "scripts" / "phase.sh")
    good = run("bash", script, "One", "true", cwd=tmp_path)
    bad = run("bash", script, "Two", "bash", "-c", "exit 3", cwd=tmp_path)
    assert (good.returncode, bad.returncode) == (0, 3)
    assert "== One" in good.stdout
    assert "Two: FAILED" in bad.stderr


SIDE_BY_SIDE = ("python3", "scripts/side_by_side.py")


def test_what_runs_side_by_side_fails_if_one_of_them_does() -> None:
    good, bad = ("Good 'one'", "echo first; echo 'last line'"), ("Bad", "echo first; echo 'last one'; exit 3")
    done = run(*SIDE_BY_SIDE, *good, *bad, *good)
    assert done.returncode == 1
    took = r"\d+ s$"
    assert len(re.findall(rf"^-- Good 'one': {took}\nlast line$", done.stdout, re.MULTILINE)) == 2
    assert re.search(rf"^first\nlast one\n-- Bad: FAILED after {took}", done.stdout, re.MULTILINE)
    assert run(*SIDE_BY_SIDE, *good).returncode == 0
    for arguments in [(), ("Title",), (*good, "Title"), ("One < Other", "true"), ("One < One", "true")]:
        assert run(*SIDE_BY_SIDE, *arguments).returncode == 1


def test_a_command_waits_for_what_it_needs_and_is_not_run_without(tmp_path: Path) -> None:
    made, beside = tmp_path / "made", tmp_path / "beside"
    waits = f"while [ ! -e '{beside}' ]; do sleep 0.01; done; touch '{made}'"
    done = run(
        *SIDE_BY_SIDE, "First", waits, "Second < First", f"test -e '{made}'", "Third", f"touch '{beside}'"
    )
    assert done.returncode == 0, done.stdout
    titles = [line.split(":")[0] for line in done.stdout.splitlines() if line.startswith("--")]
    # The third ran beside the first, which waits for it: which of the two ends first is open.
    assert sorted(titles) == ["-- First", "-- Second", "-- Third"]
    assert titles.index("-- First") < titles.index("-- Second")
    done = run(*SIDE_BY_SIDE, "First", "false", "Second < First", "true", "Third < Second", "true")
    assert done.returncode == 1
    assert "-- Second: FAILED, it was not run without: First" in done.stdout
    assert "-- Third: FAILED, it was not run without: Second" in done.stdout


@pytest.mark.parametrize(
    ("tier", "suites"),
    [
        ("check", ["cargo clippy", "cargo test", "pytest", "not slow", "mypy"]),
        ("test", ["cargo clippy", "cargo test", "tests/spark", "tests --ignore=tests/spark", "loom.sh",
                  "loom-weakened.sh", "shuttle.sh", "PENSTOCK_CHAIN=off", "tests/soak", "stubtest",
                  "test_wheel.py"]),
        ("soak", ["tests/spark", "data check", "loom.sh", "sanitize.sh", "PENSTOCK_HYPOTHESIS=soak",
                  "PENSTOCK_CHAIN=off", "tests/soak"]),
    ],
)  # fmt: skip
def test_each_tier_has_its_suites(tier: str, suites: list[str]) -> None:
    listed = run("bash", "scripts/test-suites.sh", tier, "--list").stdout
    assert [suite for suite in suites if suite not in listed] == []
    assert f"scripts/test-suites.sh {tier}" in run("make", "--dry-run", tier).stdout


def test_what_has_passed_is_not_run_again_until_something_changes(tmp_path: Path) -> None:
    clone = tmp_path / "a clone"
    clone.mkdir()
    shutil.copytree(ROOT / "scripts", clone / "scripts")
    (clone / "model").write_text("first")

    def check(command: str, **environment: str) -> tuple[int, str]:
        outside = {"CI": "", "PENSTOCK_CACHE": str(tmp_path / "cache"), **environment}
        done = run(
            "bash", "scripts/passed-before.sh", "it", "model", "--", "sh", "-c", command, cwd=clone, **outside
        )
        return done.returncode, done.stdout

    before = (0, "passed before, over the same sources\n")
    assert check("echo ran") == (0, "ran\n")
    assert check("echo ran") == before
    assert check("echo ran", PENSTOCK_FORGET="1") == (0, "ran\n")
    assert check("echo ran", PENSTOCK_CACHE=str(tmp_path / "another")) == (0, "ran\n")
    (clone / "model").write_text("second")
    assert check("echo ran; exit 3") == (3, "ran\n") == check("echo ran; exit 3")
    (clone / "model").write_text("first")
    assert check("echo ran") == before


def test_the_slowest_tests_are_told(tmp_path: Path) -> None:
    cases = "".join(f'<testcase classname="tests.x" name="t{n}" time="{n}.5"/>' for n in range(20))
    (tmp_path / "python.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    (tmp_path / "rust.log").write_text("test a::b ... ok <12.25s>\ntest c ... FAILED <99s>\n")
    done = run("python3", "scripts/slowest.py", str(tmp_path))
    lines = done.stdout.splitlines()[2:]
    assert len(lines) == 10
    assert lines[0].split() == ["19.5", "python:", "tests.x::t19"]
    assert [line for line in lines if "a::b" in line] == ["     12.2  rust: a::b"]


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({"CI": "", "PENSTOCK_CACHE": ""}, "{clone}/target"),
        ({"CI": "true", "PENSTOCK_CACHE": "", "XDG_CACHE_HOME": "{tmp}/cache"},
         "{tmp}/cache/penstock/target"),
        ({"CI": "true", "PENSTOCK_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "{tmp}/home"},
         "{tmp}/home/.cache/penstock/target"),
        ({"CI": "", "PENSTOCK_CACHE": "{tmp}/my own"}, "{tmp}/my own/target"),
        ({"CI": "true", "PENSTOCK_CACHE": "/dev/null/x"}, "{clone}/target"),
        ({"CI": "true", "PENSTOCK_CACHE": "", "CARGO_TARGET_DIR": "{tmp}/mine"}, "{tmp}/mine"),
    ],
)  # fmt: skip
def test_where_compiled_code_goes(tmp_path: Path, environment: dict[str, str], wanted: str) -> None:
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / "scripts", clone / "scripts")
    places = {"tmp": str(tmp_path), "clone": str(clone)}
    done = run(
        "bash", "-euc", 'source scripts/cargo-settings.sh; printf %s "$CARGO_TARGET_DIR"',
        cwd=clone,
        **({"CARGO_TARGET_DIR": ""} | {name: value.format(**places) for name, value in environment.items()}),
    )  # fmt: skip
    assert done.stdout == wanted.format(**places), done.stderr


def test_the_locks_pin_everything_and_name_no_place() -> None:
    locks = sorted((ROOT / "requirements").glob("*.txt"))
    assert [lock.name for lock in locks] == ["build.txt", "dev.txt"]
    for lock in locks:
        text = lock.read_text()
        pins = [line for line in text.splitlines() if line and line[0] not in "# "]
        assert pins
        assert all("==" in pin for pin in pins)
        assert text.count("--hash=sha256:") >= len(pins)
        for word in ["://", "--index", "--find-links", "--trusted-host", "file:"]:
            assert word not in text
