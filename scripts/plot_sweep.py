"""Draws the sweep over block and chunk sizes as heatmaps, one for each row width and number of threads.

The sweep comes from `cargo bench -p penstock-benches --bench memory -- sweep`. The drawing is plain SVG:
nothing is needed besides Python.
"""

import argparse
import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

__all__ = ["Measured", "draw", "main", "read"]

CELL_WIDTH, CELL_HEIGHT = 58, 30
# Room around a panel: for its title and the labels of its axes.
LEFT, TOP, RIGHT, BOTTOM = 74, 44, 26, 58
HEADER, MARGIN = 70, 16
FONT = "font-family='Helvetica, Arial, DejaVu Sans, sans-serif'"
# Slow to fast, between which colours are blended.
SLOW, FAST = (247, 251, 255), (8, 81, 156)


@dataclass(frozen=True)
class Measured:
    """One line of the sweep."""

    threads: int
    row_bytes: int
    block_rows: int
    chunk_blocks: int
    rows_per_second: float


def read(path: Path) -> list[Measured]:
    """The lines of a sweep."""
    with path.open(newline="") as file:
        return [
            Measured(
                threads=int(line["threads"]),
                row_bytes=int(line["row_bytes"]),
                block_rows=int(line["block_rows"]),
                chunk_blocks=int(line["chunk_blocks"]),
                rows_per_second=float(line["rows_per_second"]),
            )
            for line in csv.DictReader(file)
        ]


def text(x: float, y: float, content: str, size: int = 12, **attributes: str) -> str:
    """A text that is centred unless the attributes say otherwise."""
    attributes = {"text_anchor": "middle", "fill": "#222"} | attributes
    given = " ".join(f"{name.replace('_', '-')}='{value}'" for name, value in attributes.items())
    return f"<text x='{x:g}' y='{y:g}' font-size='{size}' {given}>{escape(content)}</text>"


def colour(share: float) -> str:
    """The colour of a value at that share of the way from the slowest to the fastest."""
    blended = (round(slow + (fast - slow) * share) for slow, fast in zip(SLOW, FAST, strict=True))
    return "rgb({}, {}, {})".format(*blended)


def panel(lines: Sequence[Measured], left: float, top: float) -> Iterable[str]:
    """One heatmap: rows per block from left to right, blocks per chunk from bottom to top."""
    block_rows = sorted({line.block_rows for line in lines})
    chunk_blocks = sorted({line.chunk_blocks for line in lines}, reverse=True)
    speeds = [line.rows_per_second for line in lines]
    slowest, fastest = min(speeds), max(speeds)
    width, height = CELL_WIDTH * len(block_rows), CELL_HEIGHT * len(chunk_blocks)
    threads = "two threads" if lines[0].threads == 2 else "one thread, in turns"
    best = fastest * lines[0].row_bytes / 1e9
    title = f"{lines[0].row_bytes} bytes per row, {threads} (best: {best:.1f} GB/s)"
    yield text(left + width / 2, top - 14, title, 14, font_weight="bold")
    for line in lines:
        share = (line.rows_per_second - slowest) / (fastest - slowest) if fastest > slowest else 1.0
        x = left + CELL_WIDTH * block_rows.index(line.block_rows)
        y = top + CELL_HEIGHT * chunk_blocks.index(line.chunk_blocks)
        yield (
            f"<rect x='{x:g}' y='{y:g}' width='{CELL_WIDTH}' height='{CELL_HEIGHT}' "
            f"fill='{colour(share)}' stroke='white'/>"
        )
        ink = "white" if share > 0.55 else "#222"
        weight = "bold" if line.rows_per_second == fastest else "normal"
        speed = f"{line.rows_per_second / 1e6:.0f}"
        yield text(x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2 + 4, speed, fill=ink, font_weight=weight)
    for number, rows in enumerate(block_rows):
        yield text(left + CELL_WIDTH * (number + 0.5), top + height + 16, str(rows))
    for number, blocks in enumerate(chunk_blocks):
        y = top + CELL_HEIGHT * (number + 0.5) + 4
        yield text(left - 8, y, str(blocks), text_anchor="end")
    yield text(left + width / 2, top + height + 36, "rows per block")
    x, y = left - 46, top + height / 2
    yield text(x, y, "blocks per chunk", transform=f"rotate(-90 {x:g} {y:g})")


def draw(lines: Sequence[Measured]) -> str:
    """The whole drawing."""
    if not lines:
        raise ValueError("a sweep without lines cannot be drawn")
    widths = sorted({line.row_bytes for line in lines})
    threads = sorted({line.threads for line in lines})
    across = LEFT + CELL_WIDTH * len({line.block_rows for line in lines}) + RIGHT
    down = TOP + CELL_HEIGHT * len({line.chunk_blocks for line in lines}) + BOTTOM
    width = across * len(threads) + 2 * MARGIN
    height = HEADER + down * len(widths) + MARGIN
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}' {FONT}>",
        f"<rect width='{width}' height='{height}' fill='white'/>",
        text(width / 2, 34, "Rows through a block log, by the size of its blocks and chunks", 20),
        text(
            width / 2,
            56,
            "Cells: million rows per second. Each map has colours of its own, dark is fast.",
            13,
        ),
    ]
    for row, row_bytes in enumerate(widths):
        for column, count in enumerate(threads):
            shown = [line for line in lines if (line.row_bytes, line.threads) == (row_bytes, count)]
            if shown:
                parts += panel(shown, MARGIN + across * column + LEFT, HEADER + down * row + TOP)
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Read the command line and write the drawing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sweep", nargs="?", type=Path, default=Path("target/memory-sweep.csv"))
    parser.add_argument("drawing", nargs="?", type=Path, help="by default beside the sweep, as .svg")
    options = parser.parse_args()
    drawing = options.drawing or options.sweep.with_suffix(".svg")
    drawing.write_text(draw(read(options.sweep)))
    print(drawing)


if __name__ == "__main__":
    main()
