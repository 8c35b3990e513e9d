"""The guide to clusters: its blocks run one after the other, and print what stands behind each."""

import contextlib
import io
import re
from pathlib import Path

from pyspark.sql import SparkSession

GUIDE = Path(__file__).parents[2] / "docs" / "cluster.md"
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n\s*^```text\n(?P<output>.*?)^```\n", re.MULTILINE | re.DOTALL
)


def test_every_block_prints_what_the_guide_says(spark: SparkSession) -> None:
    text = GUIDE.read_text(encoding="utf-8")
    blocks = [(match["code"], match["output"]) for match in BLOCK.finditer(text)]
    assert len(blocks) == text.count("```python") >= 3
    names: dict[str, object] = {}
    for code, output in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(GUIDE), "exec"), names)
        assert printed.getvalue() == output


def test_the_readme_leads_to_it() -> None:
    assert "docs/cluster.md" in (GUIDE.parents[1] / "README.md").read_text(encoding="utf-8")
