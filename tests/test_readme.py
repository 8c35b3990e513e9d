"""Runs the Python blocks of README.md and compares what they print with the text block behind each."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"

# A block, and the block of output right behind it if there is one.
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\s*^```text\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL
)

# A package whose entry is None cannot be imported: what a user has who installed the wheel and nothing else.
WHEEL_ALONE = "import sys; sys.modules.update(dict.fromkeys(['numpy', 'pandas', 'polars', 'pyarrow']))\n"

BLOCKS = [(match["code"], match["output"]) for match in BLOCK.finditer(README.read_text(encoding="utf-8"))]


def output_of(code: str, folder: Path) -> str:
    """What a fresh interpreter prints for the code. Warnings are errors."""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_block_shows_its_output() -> None:
    assert len(BLOCKS) >= 2
    assert README.read_text(encoding="utf-8").count("```python") == len(BLOCKS)
    assert [code for code, output in BLOCKS if output is None] == []


def test_the_first_block_needs_the_wheel_alone() -> None:
    code, _ = BLOCKS[0]
    assert set(re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)) == {"penstock"}


@pytest.mark.parametrize(("code", "output"), BLOCKS, ids=[f"block{number}" for number in range(len(BLOCKS))])
def test_block_prints_what_the_readme_says(code: str, output: str, tmp_path: Path) -> None:
    needs_pyarrow = "pyarrow" in code
    assert output_of(code if needs_pyarrow else WHEEL_ALONE + code, tmp_path) == output


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", README.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []


def test_commands_exist() -> None:
    commands = set(re.findall(r"\bmake ([a-z-]+)", README.read_text(encoding="utf-8")))
    assert {"demo", "test"} <= commands
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    assert [
        command for command in sorted(commands) if not re.search(rf"^{command}:", makefile, re.MULTILINE)
    ] == []
