"""`nmt translate --memory`: exact matches as they are, and who they come from in all outputs."""

import json
from pathlib import Path

import pytest

from nmt.errors import ConfigError, NmtError
from nmt.memory.match import MemoryPair
from nmt.memory.store import Memory
from tests.cli.commands import fail, invoke, succeed

PAIR = MemoryPair("a small dog", "ein kleiner Hund")
NOTE = (
    "the model was not trained with data.memory, so of --memory it uses exact matches alone; "
    "--adapt lets it learn from similar ones\n"
)


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    with Memory.create(tmp_path / "m.db", "en", "de") as made:
        made.add([PAIR, MemoryPair("a cat", "eine Katze")])
    return tmp_path / "m.db"


def test_an_exact_match_is_the_translation_and_a_note_says_that_others_are_none(
    tiny_run: Path, memory: Path
) -> None:
    plain = succeed("translate", "--model", tiny_run, text=b"a dog\n")
    text = b"a small dog\na dog\n"
    result = invoke("translate", "--model", tiny_run, "--memory", memory, text=text)
    assert result.stdout == f"{PAIR.target}\n{plain}"
    assert result.stderr == NOTE


def test_json_names_the_match(tiny_run: Path, memory: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    Memory.create(other, "en", "de").close()
    options = ["--memory", other, "--memory", memory, "--json"]
    rows = succeed("translate", "--model", tiny_run, *options, text=b"a cat\na b\n")
    first, second = (json.loads(row)["translations"][0] for row in rows.splitlines())
    assert first["text"] == "eine Katze"
    assert first["match"] == {"type": "exact-match", "score": 1.0}
    assert "match" not in second


def test_a_model_adapts_to_similar_pairs_and_forgets_them(tiny_run: Path, memory: Path) -> None:
    """Also in other processes; a line without similar pairs is translated as without a memory."""
    text = b"a small dog b\nb c d\na small dog b\n"
    options = ["--model", tiny_run, "--json"]
    plain = succeed("translate", *options, text=text).splitlines()
    options += ["--memory", memory, "--adapt"]
    adapted = succeed("translate", *options, text=text).splitlines()
    [first], [second], _ = (json.loads(row)["translations"] for row in adapted)
    assert first["match"] == {"type": "fuzzy-match", "score": 0.75}
    assert first["score"] != json.loads(plain[0])["translations"][0]["score"]
    assert "match" not in second
    assert adapted[1] == plain[1]
    alone = succeed("translate", *options, text=b"a small dog b\n").splitlines()
    assert json.loads(adapted[2])["translations"] == json.loads(alone[0])["translations"]
    assert succeed("translate", *options, "--workers", 2, text=text).splitlines() == adapted


def test_a_document_says_where_its_texts_come_from(
    tiny_run: Path, memory: Path, tmp_path: Path
) -> None:
    file, output = tmp_path / "a.xlf", tmp_path / "b.xlf"
    unit = "<trans-unit id='{}'><source>{}</source></trans-unit>"
    units = unit.format(1, "a small dog") + unit.format(2, "a <g id='1'>cat</g>")
    file.write_text(f"<xliff version='1.2'>{units}</xliff>")
    options = ["--memory", memory, file, "-o", output, "--json"]
    succeed("translate", "--model", tiny_run, *options)
    written = output.read_text()
    assert written.count('state-qualifier="exact-match"') == 2
    assert written.count('<alt-trans match-quality="100%"') == 2
    assert "Katze</g>" in written and ">ein kleiner Hund</target>" in written
    rows = [json.loads(row) for row in (tmp_path / "b.xlf.json").read_text().splitlines()]
    assert [row["translations"][0]["match"]["score"] for row in rows] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--no-exact-matches"], "--no-exact-matches says what is done"),
        (["--adapt"], "--adapt learns from the pairs of --memory; add --memory FILE"),
        (["--adapt-document"], "--adapt-document says how --adapt learns; add --adapt"),
        (["--memory", "m.db", "--adapt", "--adapt-document"], "is for documents; give one"),
        (["--memory", "m.db", "--no-exact-matches"], "can use exact matches alone"),
        (["--memory", "other.db"], "other.db: the memory is de-en"),
        (["--memory", "none.db"], "none.db"),
    ],
)
def test_a_memory_that_cannot_be_used_is_one_sentence(
    tiny_run: Path,
    memory: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(memory.parent)
    Memory.create(Path("other.db"), "de", "en").close()
    assert message in fail(NmtError, "translate", "--model", tiny_run, *options, text=b"a\n")


def test_the_output_replaces_no_memory(tiny_run: Path, memory: Path) -> None:
    before = memory.read_bytes()
    options = ["--memory", memory, "-o", memory]
    fail(ConfigError, "translate", "--model", tiny_run, *options, text=b"a\n")
    assert memory.read_bytes() == before
