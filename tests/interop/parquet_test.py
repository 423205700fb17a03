"""read_parquet() gives the tables that pyarrow writes.

REQUIREMENTS: parquet/requirements.txt
"""

import datetime
import decimal
import json
import os
import random
import re
import resource
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PROGRAM = os.path.join(os.environ["HOLDFAST_BUILD"], "bin", "parquet_program")


def run(path, *columns, max_bytes=2 << 30, memory=None):
    limit = memory and (lambda: resource.setrlimit(resource.RLIMIT_DATA, (memory, memory)))
    result = subprocess.run([PROGRAM, str(max_bytes), str(path), *columns], capture_output=True, text=True, timeout=60,
                            preexec_fn=limit)
    return result.returncode, result.stdout


def read(path, *columns):
    code, output = run(path, *columns)
    assert code == 0, output
    return json.loads(output)


def refusal(table, tmp_path, *columns):
    pq.write_table(table, tmp_path / "a.parquet")
    code, output = run(tmp_path / "a.parquet", *columns)
    assert code == 1, output
    return output


INTEGERS = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63, pa.uint8(): 8, pa.uint16(): 16,
            pa.uint32(): 32, pa.uint64(): 63}


def drawn(draws, rows, make):
    """Every fifth cell is null."""
    return [None if draws.random() < 0.2 else make() for _ in range(rows)]


def random_table(draws, rows):
    columns = {}
    for dtype, bits in INTEGERS.items():
        low = 0 if str(dtype).startswith("u") else -2 ** bits
        columns[str(dtype)] = pa.array(drawn(draws, rows, lambda: draws.randint(low, 2 ** bits - 1)), dtype)
    columns["bool"] = pa.array(drawn(draws, rows, lambda: draws.random() < 0.5), pa.bool_())
    for dtype in (pa.float32(), pa.float64()):
        columns[str(dtype)] = pa.array(drawn(draws, rows, lambda: draws.gauss(0, 1e3)), dtype)
    words = ["Köln", "Bonn", "a,b\"c", "x" * 300, "日本"]
    for dtype in (pa.string(), pa.large_string()):
        columns[str(dtype)] = pa.array(drawn(draws, rows, lambda: draws.choice(words)), dtype)
    columns["dictionary"] = pa.array(drawn(draws, rows, lambda: draws.choice(words))).dictionary_encode()
    return pa.table(columns)


def expected_cells(column):
    values = column.to_pylist()
    if pa.types.is_floating(column.type):
        return "real", values
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return "integer", [None if value is None else str(int(value)) for value in values]
    return "text", values


@pytest.mark.parametrize("options", [{}, {"compression": "zstd", "row_group_size": 7},
                                     {"compression": "gzip", "use_dictionary": False, "data_page_version": "2.0"},
                                     {"compression": "none", "version": "1.0", "row_group_size": 1}])
def test_tables_of_pyarrow_are_read(tmp_path, options):
    for seed in range(5):
        table = random_table(random.Random(seed), 40)
        pq.write_table(table, tmp_path / "a.parquet", **options)

        columns = read(tmp_path / "a.parquet")

        # Version 1.0 of the format keeps some unsigned integers in wider ones; their values are the same.
        assert [column["name"] for column in columns] == table.column_names
        for column in columns:
            kind, cells = expected_cells(table[column["name"]])
            assert (column["type"], column["cells"]) == (kind, cells), column["name"]


def test_columns_are_read_in_the_order_that_is_asked_for(tmp_path):
    table = pa.table({"a": [1, 2], "day": [datetime.date(2026, 1, 1)] * 2, "b": ["x", "y"]})
    pq.write_table(table, tmp_path / "a.parquet")

    columns = read(tmp_path / "a.parquet", "b", "a")

    assert [(column["name"], column["cells"]) for column in columns] == [("b", ["x", "y"]), ("a", ["1", "2"])]


def test_nan_and_empty_text_are_cells_without_a_value(tmp_path):
    pq.write_table(pa.table({"x": [1.5, float("nan")], "t": ["", "u"]}), tmp_path / "a.parquet")

    columns = read(tmp_path / "a.parquet")

    assert [column["cells"] for column in columns] == [[1.5, None], [None, "u"]]


@pytest.mark.parametrize("values, reason", [
    ([datetime.date(2026, 1, 1)], "unsupported: .*column \"x\" is of date32"),
    ([datetime.datetime(2026, 1, 1)], "unsupported: .*column \"x\" is of timestamp"),
    ([decimal.Decimal("1.5")], "unsupported: .*column \"x\" is of decimal"),
    ([b"bytes"], "unsupported: .*column \"x\" is of binary"),
    ([[1, 2]], "unsupported: .*column \"x\" is of list"),
    ([{"a": 1}], "unsupported: .*column \"x\" is of struct"),
    (pa.array([2 ** 63], pa.uint64()), "invalid_file: .*row 0, column \"x\": 9223372036854775808 has more than 63 bits"),
    ([1.0, float("inf")], "invalid_file: .*row 1, column \"x\": it is infinite"),
    (["a", "b\0c"], "invalid_file: .*row 1, column \"x\": its text is not UTF-8, or holds a NUL"),
    (pa.array([], pa.int64()), "invalid_file: .*it holds no row"),
])
def test_what_a_table_cannot_hold_is_refused(tmp_path, values, reason):
    assert re.search(reason, refusal(pa.table({"x": values}), tmp_path))


def test_unknown_columns_and_two_of_one_name_are_refused(tmp_path):
    table = pa.table({"area": [1], "town": ["x"]})
    assert "no column \"aria\"; the nearest name is \"area\"" in refusal(table, tmp_path, "aria")
    assert "two columns named \"area\"" in refusal(table, tmp_path, "area", "area")


@pytest.mark.parametrize("column, table_bytes", [
    (["x" * 100_000] * 500, 50_004_000),
    (pa.array(["x" * 100_000] * 500).dictionary_encode(), 50_004_000),
    (pa.array(["x" * 100_000] * 500, pa.large_string()), 50_004_000),
    ([7] * 100_000, 800_000),
    ([None] * 100_000, 800_000),
])
def test_the_limit_counts_what_the_table_holds(tmp_path, column, table_bytes):
    """A file stores a value once, however many rows have it."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": pa.array(column) if column[0] is not None else pa.array(column, pa.int64())}), path)
    assert path.stat().st_size < 200_000

    code, output = run(path, max_bytes=table_bytes - 1)
    assert code == 1 and f"its columns have more than {table_bytes - 1} bytes of content; raise max_bytes" in output
    code, output = run(path, max_bytes=table_bytes)
    assert code == 0, output[:200]


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}])
def test_a_small_file_cannot_take_the_memory(tmp_path, options):
    """A gigabyte of text, which stands in the file once."""
    pq.write_table(pa.table({"x": ["x" * 1_000_000] * 1000}), tmp_path / "a.parquet", **options)
    assert (tmp_path / "a.parquet").stat().st_size < 1_000_000

    code, output = run(tmp_path / "a.parquet", max_bytes=10_000_000, memory=1_000_000_000)

    assert code == 1 and "invalid_file" in output and "more memory than 10000000 bytes to decode; raise max_bytes" in output


def test_damaged_files_are_refused_by_name(tmp_path):
    pq.write_table(random_table(random.Random(1), 40), tmp_path / "whole.parquet")
    whole = (tmp_path / "whole.parquet").read_bytes()
    path = tmp_path / "a.parquet"
    for bytes_of_file in (b"", b"PAR1", whole[:-1], whole[: len(whole) // 2], b"\0" * 100, whole[4:]):
        path.write_bytes(bytes_of_file)
        code, output = run(path)
        assert code == 1 and output.startswith("refused: invalid_file: ") and "a.parquet" in output, output


def test_a_changed_byte_ends_in_an_error_or_a_table(tmp_path):
    """No crash, whatever the byte: Arrow's checks and ours name the file."""
    draws = random.Random(3)
    pq.write_table(random_table(draws, 40), tmp_path / "whole.parquet", write_page_checksum=True)
    whole = bytearray((tmp_path / "whole.parquet").read_bytes())
    path = tmp_path / "a.parquet"
    for _ in range(60):
        changed = bytearray(whole)
        changed[draws.randrange(len(changed))] ^= 1 << draws.randrange(8)
        path.write_bytes(changed)
        code, output = run(path)
        assert code in (0, 1), (code, output)
