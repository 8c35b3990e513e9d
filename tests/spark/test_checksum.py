"""Checksums: the same for the same rows, however they are kept, and another for any other rows."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.checksum import add_checksums, checksum

ROWS = {
    "n": pa.array([1, None, 3, -4], pa.int32()),
    "big": pa.array([2**64 - 1, 0, None, 5], pa.uint64()),
    "share": pa.array([0.5, float("nan"), None, -0.0], pa.float32()),
    "flag": pa.array([True, False, None, True]),
    "at": pa.array([None, 2, 3, 4], pa.timestamp("ms")),
    "day": pa.array([1, None, 3, 4], pa.date32()),
    "who": pa.array(["", "exactly8", None, "long enough to take several words, \u00e9\u4e16"]),
    "bytes": pa.array([b"\0", b"", None, b"\0\0"]),
}
BATCH = pa.record_batch(ROWS)


def changed(name: str, values: pa.Array) -> pa.RecordBatch:
    return BATCH.set_column(BATCH.schema.get_field_index(name), name, values)


def test_it_is_the_same_everywhere() -> None:
    # A number that was written down: checksums in manifests must stay valid.
    assert checksum(BATCH, 0) == 0xDC79_64D0_77F5_7B90
    assert checksum(pa.record_batch({"n": pa.array([], pa.int64())}), 7) == 0


def test_it_adds_up_however_rows_are_cut() -> None:
    whole = checksum(BATCH, 100)
    for cut in range(BATCH.num_rows + 1):
        parts = [checksum(BATCH.slice(0, cut), 100), checksum(BATCH.slice(cut), 100 + cut)]
        assert add_checksums(parts) == whole


def test_how_values_are_kept_does_not_matter() -> None:
    whole = checksum(BATCH, 0)
    assert checksum(changed("n", ROWS["n"].cast(pa.int64())), 0) == whole
    assert checksum(changed("share", ROWS["share"].cast(pa.float64())), 0) == whole
    for kind in (pa.large_string(), pa.string_view(), pa.binary()):
        assert checksum(changed("who", ROWS["who"].cast(kind)), 0) == whole
    assert checksum(changed("who", ROWS["who"].dictionary_encode()), 0) == whole


@pytest.mark.parametrize("name", ROWS)
def test_every_value_and_every_null_counts(name: str) -> None:
    values = ROWS[name].to_pylist()
    zero = {"n": 0, "big": 0, "share": 0.0, "flag": False, "who": "", "bytes": b""}.get(name, 0)
    for row in range(len(values)):
        others = [None, zero] if values[row] is not None else [zero]
        for other in others:
            if other == values[row] and str(other) == str(values[row]):
                continue
            replaced = pa.array([*values[:row], other, *values[row + 1 :]], ROWS[name].type)
            assert checksum(changed(name, replaced), 0) != checksum(BATCH, 0), (name, row, other)


def test_places_count() -> None:
    swapped = pa.Table.from_batches([BATCH]).take([1, 0, 2, 3]).combine_chunks().to_batches()[0]
    assert checksum(swapped, 0) != checksum(BATCH, 0)
    assert checksum(BATCH, 1) != checksum(BATCH, 0)
    columns = pa.record_batch({"a": ["x", "y"], "b": ["y", "x"]})
    assert checksum(columns, 0) != checksum(columns.select(["b", "a"]), 0)
    assert checksum(pa.record_batch({"a": ["ab"], "b": ["c"]}), 0) != checksum(
        pa.record_batch({"a": ["a"], "b": ["bc"]}), 0
    )


@given(st.lists(st.one_of(st.none(), st.text(max_size=30)), max_size=20), st.data())
def test_text_hashes_by_its_own_bytes_alone(texts: list[str | None], data: st.DataObject) -> None:
    column = pa.record_batch({"text": pa.array(texts, pa.string())})
    one_by_one = [
        checksum(pa.record_batch({"text": pa.array([text], pa.string())}), row)
        for row, text in enumerate(texts)
    ]
    assert checksum(column, 0) == add_checksums(one_by_one)
    if texts:
        place = data.draw(st.integers(0, len(texts) - 1))
        other = data.draw(st.one_of(st.none(), st.text(max_size=30)))
        replaced = [*texts[:place], other, *texts[place + 1 :]]
        same = checksum(pa.record_batch({"text": pa.array(replaced, pa.string())}), 0) == checksum(column, 0)
        assert same == (other == texts[place])


def test_types_without_a_checksum_are_refused() -> None:
    with pytest.raises(TypeError, match="no checksum for the column 'xs' of the type list"):
        checksum(pa.record_batch({"xs": [[1]]}), 0)
