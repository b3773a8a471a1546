"""The lines of `nmt translate`: candidates, several models, alignments, JSON and its demands."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch

from nmt.cli.lines.json_lines import format_record, read_record
from nmt.data.text.parallel_text import SentencePair
from nmt.data.text.words import has_any
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import ConfigError, DataError
from nmt.run.checkpoint import save_checkpoint, weights_of
from nmt.run.directory import RunDirectory
from nmt.run.model import build_model, load_model
from tests.cli.commands import fail, lines_of, records_of, write_lines

LINES = ["a small dog", "", "the 😀 cat .", "Hund"]
INPUT = "\n".join(LINES)
UTILITIES: dict[str, Callable[[str, str], float]] = {
    "chrf": lambda text, other: sacrebleu.sentence_chrf(text, [other]).score,
    "bleu": lambda text, other: sacrebleu.sentence_bleu(text, [other]).score,
}


def translations_of(*options: object, text: str = INPUT) -> list[list[dict[str, Any]]]:
    return [
        found["translations"] for found in records_of("translate", "--json", *options, text=text)
    ]


def another_run(tiny_run: Path, path: Path, *more: SentencePair) -> Path:
    """A copy of the run with other weights and, if there are `more` pairs, another vocabulary."""
    run = RunDirectory(Path(shutil.copytree(tiny_run, path)))
    loaded = load_model(path, torch.device("cpu"))
    tokenizer = loaded.tokenizer
    if more:
        tokenizer = learn_vocabulary(more, loaded.config.tokenizer)
        tokenizer.save(run.tokenizer)
    torch.manual_seed(7)
    model = build_model(loaded.config, tokenizer)
    torch.nn.init.normal_(model.output_embedding.weight)
    save_checkpoint(run.checkpoint(1), weights_of(model))
    return path


@pytest.mark.parametrize("metric", ["chrf", "bleu"])
@pytest.mark.parametrize("options", [["--sample", "--candidates", "6"], ["--beam-size", "5"]])
def test_the_candidate_of_highest_mean_utility_wins(
    tiny_run: Path, metric: str, options: list[str]
) -> None:
    """Against each candidate of --n-best, one by one; a symbol left out of a text has no part."""
    count = options[-1]
    known = INPUT.replace("😀 ", "")
    without = [option for option in options if option not in ("--candidates", "6")]
    listed = translations_of("-m", tiny_run, *without, "--n-best", count, text=known)
    chosen = translations_of("-m", tiny_run, *options, "--mbr", metric, text=known)
    texts = lines_of("translate", "-m", tiny_run, *options, "--mbr", metric, text=known)
    assert texts == [found[0]["text"] for found in chosen]
    assert chosen[1] == [{"text": "", "score": 0.0, "utility": 0.0}]
    for place in (0, 2, 3):
        candidates = [candidate["text"] for candidate in listed[place]]
        assert len(candidates) == int(count)
        rated = {}
        for text in candidates:
            others = list((Counter(candidates) - Counter([text])).elements())
            rated[text] = sum(UTILITIES[metric](text, other) for other in others) / len(others)
        (winner,) = chosen[place]
        assert winner["utility"] == pytest.approx(max(rated.values()), abs=1e-3)
        assert rated[winner["text"]] == pytest.approx(max(rated.values()), abs=1e-3)


def test_the_best_by_utility_come_in_order(tiny_run: Path) -> None:
    options = ("-m", tiny_run, "--sample", "--mbr", "chrf", "--n-best", 3)
    for found in translations_of(*options)[::2]:
        utilities = [translation["utility"] for translation in found]
        assert utilities == sorted(utilities, reverse=True)
        assert len({translation["text"] for translation in found}) == 3
    rows = lines_of("translate", *options, text="a dog")
    assert all(re.fullmatch(r"1 \|\|\| .* \|\|\| -\d+\.\d{4}", row) for row in rows)


def test_models_translate_score_and_are_evaluated_together(tiny_run: Path, tmp_path: Path) -> None:
    """The same model twice is the model; another one changes translations and scores."""
    options = ("--n-best", 2, "--precision", "fp32")
    alone = translations_of("-m", tiny_run, *options)
    twice = translations_of("-m", tiny_run, "-m", tiny_run / "checkpoints/step-00000001", *options)
    for one, two in zip(alone, twice, strict=True):
        assert [t["text"] for t in two] == [t["text"] for t in one]
        assert [t["score"] for t in two] == pytest.approx([t["score"] for t in one], abs=2e-4)
    first, second = ("-m", tiny_run), ("-m", another_run(tiny_run, tmp_path / "other"))
    both = translations_of(*first, *second)
    assert both == translations_of(*second, *first) != translations_of(*first)
    scored = [
        lines_of("score", *models, text="a dog\tein Hund")[0]
        for models in (first, second, first + second)
    ]
    assert len(set(scored)) == 3
    assert lines_of("eval-bleu", *first, *second, "--no-confidence")[1].startswith("BLEU ")
    choice = ("--mbr", "chrf", "--sample", "--candidates", 4, "--alignments", "--n-best", 2)
    found = translations_of(*first, *second, *choice)
    assert [len(translations) for translations in found][1] == 1
    for translated in found[0]:
        assert list(translated) == ["text", "score", "utility", "alignment", "tokens"]


def test_models_of_other_vocabularies_are_refused_and_named(tiny_run: Path, tmp_path: Path) -> None:
    other = another_run(tiny_run, tmp_path / "other", SentencePair("a small dog", "der Bär ."))
    for command in ("translate", "score"):
        message = fail(ConfigError, command, "-m", tiny_run, "-m", other)
        assert str(tiny_run) in message and str(other) in message
        assert re.search(r"differ in their source vocabulary \(entry \d+: '.+' and '.+'\)", message)


def test_alignments_stand_behind_a_tab_or_the_score_of_a_list(tiny_run: Path) -> None:
    plain = lines_of("translate", "-m", tiny_run, text=INPUT)
    lines = lines_of("translate", "-m", tiny_run, "--alignments", text=INPUT)
    assert lines[1] == "\t"
    for source, text, line in zip(LINES, plain, lines, strict=True):
        translated, _, column = line.rpartition("\t")
        assert translated == text
        pairs = [pair.split("-") for pair in column.split()]
        assert all(int(word) < len(source.split()) for word, _ in pairs)
        assert {int(word) for _, word in pairs} == set(range(len(text.split())))
    rows = lines_of("translate", "-m", tiny_run, "--alignments", "--n-best", 2, text="a dog")
    assert len(rows) == 2
    for row in rows:
        assert re.fullmatch(r"1 \|\|\| .* \|\|\| -\d+\.\d{4} \|\|\| (\d+-\d+ ?)+", row)


def test_json_holds_alignment_and_token_scores(tiny_run: Path) -> None:
    exact = ("--precision", "fp32", "--length-normalization", "none")
    options = ("-m", tiny_run, "--alignments", *exact)
    plain = lines_of("translate", *options, text=INPUT)
    found = [translations[0] for translations in translations_of(*options)]
    assert [f"{record['text']}\t{record['alignment']}" for record in found] == plain
    assert found[1] == {"text": "", "score": 0.0, "alignment": "", "tokens": []}
    for record in found:
        total = sum(token["log_probability"] for token in record["tokens"])
        assert total == pytest.approx(record["score"], abs=1e-2)
        assert all(set(token) == {"piece", "log_probability"} for token in record["tokens"])


def has(text: str, *terms: str) -> bool:
    return all(has_any((term,), text) for term in terms)


@pytest.fixture
def glossary(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "terms.tsv", ["dog\tHund", "small dog\tZwerg-Ω"])


def test_the_glossary_holds_where_its_terms_occur(tiny_run: Path, glossary: Path) -> None:
    text = "a Dog\na small dog\na cat\n\n"
    found = lines_of("translate", "-m", tiny_run, "--glossary", glossary, text=text)
    free = lines_of("translate", "-m", tiny_run, text=text)
    assert has(found[0], "Hund") and has(found[1], "Zwerg-Ω")
    assert found[2:] == free[2:]


def test_forbidden_words_come_from_options_and_a_file(tiny_run: Path, tmp_path: Path) -> None:
    [free] = lines_of("translate", "-m", tiny_run, text="a dog")
    word = free.split()[0]
    words = write_lines(tmp_path / "words", ["", word])
    for option in (("--forbid", word), ("--forbid-file", words)):
        [found] = lines_of("translate", "-m", tiny_run, *option, text="a dog")
        assert word not in found.split()


def test_a_json_line_asks_for_its_own_terms(tiny_run: Path, glossary: Path) -> None:
    asked: list[dict[str, object]] = [
        {"terms": {"dog": "Wolf"}},
        {"terms": ["Wolf", "Bär"], "target_prefix": "Das "},
        {},
    ]
    lines = [json.dumps({"source": "a dog", **keys}) for keys in asked]
    options = ("translate", "-m", tiny_run, "--json-input", "--glossary", glossary)
    found = lines_of(*options, text="\n".join(lines))
    assert has(found[0], "Wolf") and not has(found[0], "Hund")
    assert found[1].startswith("Das ") and has(found[1], "Wolf", "Bär", "Hund")
    assert has(found[2], "Hund")
    line = '{"source": "A dog. A cat.", "target_prefix": "Ein ", "terms": {"cat": "Katze"}}'
    for choice in (("--document",), ("--mbr", "chrf"), ("--alignments",)):
        [translated] = lines_of(*options, *choice, text=line)
        assert translated.startswith("Ein ") and has(translated, "Hund", "Katze")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"terms": 3}, '"terms" is 3; expected source terms with their translations'),
        ({"terms": {"dog": 5}}, '"terms" is {"dog": 5}; expected'),
        ({"terms": {"dog": " "}}, "the translation of 'dog' -> ' ': the term ' ' is blank"),
        ({"forbidden": "a"}, '"forbidden" is "a"; expected a list of words'),
        ({"forbidden": ["a\nb"]}, "holds a line end; write it on one line"),
        ({"target_prefix": 1}, '"target_prefix" is 1; expected a string'),
        ({"terms": ["Hund"], "forbidden": ["hund"]}, "the line 'a dog': 'Hund' is asked for"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    tiny_run: Path, keys: dict[str, object], message: str
) -> None:
    line = json.dumps({"source": "a dog", **keys})
    assert message in fail(DataError, "translate", "-m", tiny_run, "--json-input", text=line)


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
        ('{"source": "a", "x": NaN}', "no JSON .NaN: JSON has no such number"),
        ('{"source": "a", "x": 1e999}', "no JSON .1e999: JSON has no such"),
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
        format_record(record)
    while record:  # so that letting go of it does not recurse either
        record = record["x"]  # type: ignore[assignment]


def test_what_utf8_cannot_hold_is_escaped() -> None:
    record = {"source": "ä", "other": "\ud800"}
    assert json.loads(format_record(record).encode("utf-8")) == record
    assert format_record({"source": "ä"}) == '{"source": "ä"}'
