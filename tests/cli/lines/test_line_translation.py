import json
from pathlib import Path

import pytest

from nmt.cli.lines.line_translation import read_record, written_record
from nmt.errors import DataError
from tests.cli.commands import lines_of, records_of

RECORDS: list[dict[str, object]] = [
    {"id": 7, "source": "a small dog", "meta": {"tags": ["x", None, 1.5]}},
    {"source": ""},
    {"source": "😀 \x00 \u2028 two\nlines", "Quelle": "ä"},
]


def test_sources_are_translated_as_plain_lines_and_other_keys_are_passed_on(tiny_run: Path) -> None:
    text = "".join(json.dumps(record) + "\n" for record in RECORDS)
    # in fp32 a line does not depend on the lines beside it
    command = ("translate", "-m", tiny_run, "--precision", "fp32")
    plain = lines_of(*command, text="a small dog\n\n")
    found = lines_of(*command, "--json-input", text=text)
    assert found[:2] == plain
    assert len(found) == 3  # a source with line ends stays one line of output
    rows = records_of(*command, "--json-input", "--json", text=text)
    for row, record in zip(rows, RECORDS, strict=True):
        assert row.pop("translations")[0].keys() == {"text", "score"}
        assert row == record
        assert list(row) == list(record)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", 'no JSON .*expected a JSON object with the key "source"'),
        ("a dog", "no JSON"),
        ("{'source': 'a'}", "no JSON"),
        ('{"source": "a", "x": NaN}', "no JSON .NaN is no number that JSON can hold"),
        ('{"source": "a", "x": 1e999}', "no JSON .1e999 is no number"),
        ("[" * 100_000, "no JSON"),
        ('["source"]', "a list; expected a JSON object"),
        ("null", "null; expected"),
        ("true", "a boolean; expected"),
        ('"source"', "a string; expected"),
        ('{"text": "a"}', 'an object without "source"; expected'),
        ('{"source": 3}', '"source" is a number; expected'),
        ('{"source": {}}', '"source" is an object; expected'),
        ('{"source": "\\ud800"}', '"source" holds half a surrogate pair .*write the whole'),
    ],
)
def test_what_is_no_such_object_is_refused_by_file_and_line(line: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"^in\.jsonl:5: {message}"):
        read_record(line, "in.jsonl:5")


def test_what_is_nested_too_deeply_to_be_written_is_refused() -> None:
    record: dict[str, object] = {}
    for _ in range(100_000):
        record = {"x": record}
    with pytest.raises(DataError, match="nested too deeply to be written; leave it out"):
        written_record(record)
    while record:  # so that letting go of it does not recurse either
        record = record["x"]  # type: ignore[assignment]


def test_what_utf8_cannot_hold_is_escaped() -> None:
    record = {"source": "ä", "other": "\ud800"}
    line = written_record(record)
    assert json.loads(line.encode("utf-8")) == record
    assert written_record({"source": "ä"}) == '{"source": "ä"}'
