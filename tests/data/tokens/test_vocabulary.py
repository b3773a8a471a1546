"""Vocabularies are learnt from all of the text, or adopted as they are; refusals say what fits."""

import re
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sentencepiece

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens import vocabulary
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from nmt.data.tokens.vocabulary import adopt_vocabulary, check_tags, learn_vocabulary
from nmt.errors import ConfigError, DataError
from nmt.recipe.config import TokenizerConfig
from nmt.recipe.config_file import parse_config
from tests.data.tokens.tokenizers import PAIRS, SIZES, TEXTS, every_kind, foreign_model, learn


def test_a_character_vocabulary_ends_with_the_alphabet() -> None:
    tokenizer = learn("char", vocabulary_size=5000)
    specials = [tokenizer.target.pieces[i] for i in (PAD, UNK, BOS, EOS)]
    assert set(tokenizer.target.pieces) == {*specials, *"".join(TEXTS).replace(" ", "▁")}


@every_kind
def test_learning_again_gives_the_same_bytes_and_is_silent(
    kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    learn(kind).save(tmp_path)
    assert Tokenizer.load(tmp_path).source.model == learn(kind).source.model
    assert capfd.readouterr() == ("", "")


def test_training_lines_of_any_length_are_learnt_from(tmp_path: Path) -> None:
    # SentencePiece itself skips lines over 4192 bytes, and dies of words over 65,535 characters
    long = SentencePair("dog " * 3000 + "end", "ä" * 100_000)
    config = TokenizerConfig(kind="char", vocabulary_size=12)
    tokenizer = learn_vocabulary([long], config)
    assert UNK not in tokenizer.source.encode(["dog end ä"])[0]
    bpe = learn_vocabulary([long], TokenizerConfig(vocabulary_size=20))
    assert bpe.target.decode(bpe.target.encode([long.source])) == [long.source]


LEARN_WITH_LITTLE_ROOM = """
import resource, sys
from nmt.machine.memory import _address_space, share_one_arena
from tests.data.tokens.tokenizers import learn
stack, limit = resource.getrlimit(resource.RLIMIT_STACK)[0], resource.RLIMIT_AS
stack = 2 << 20 if stack == resource.RLIM_INFINITY else stack
resource.setrlimit(limit, [_address_space("VmSize") + 16 * stack + (int(sys.argv[1]) << 20)] * 2)
share_one_arena()
try:
    print(learn().target.size)
except MemoryError:
    print("too little")
"""
"""learns a vocabulary with room for SentencePiece's 16 threads and some MiB"""


@pytest.mark.skipif(sys.platform != "linux", reason="macOS keeps to no such limit")
@pytest.mark.parametrize(("megabytes", "expected"), [(0, "too little\n"), (48, "60\n")])
def test_a_small_text_is_learnt_in_little_room_and_refused_in_less(
    project: Path, megabytes: int, expected: str
) -> None:
    command = [sys.executable, "-c", LEARN_WITH_LITTLE_ROOM, str(megabytes)]
    run = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (0, expected), run.stderr


RESERVED = "\0\x1f▅"  # characters that no vocabulary can have


@pytest.mark.parametrize("normalization", ["nmt_nfkc", "identity"])
@pytest.mark.parametrize("character", RESERVED)
def test_a_line_with_a_character_of_sentencepiece_is_learnt_without_it(
    character: str, normalization: str
) -> None:
    pairs = [SentencePair(f"ąę{character}ćł", "ein Hund"), SentencePair("a dog", "der Hund")]
    config = TokenizerConfig(kind="char", vocabulary_size=99, normalization=normalization)  # type: ignore[arg-type]
    model = learn_vocabulary(pairs, config).source
    assert UNK not in model.encode(["ąęćł"])[0]
    expected = [] if character == "\x1f" and normalization == "nmt_nfkc" else [character]
    assert model.unknown(pairs[0].source) == expected  # nmt_nfkc deletes control characters


def test_every_other_character_can_be_learnt() -> None:
    surrogates = range(0xD800, 0xE000)
    codes = [*range(0x3100), *range(0xE000, 0xE010), *range(0xFE00, 0x10000), 0x1F600, 0x10FFFF]
    characters = [chr(code) for code in codes if code not in surrogates and chr(code) != "\n"]
    pairs = [SentencePair(f"x{c}y", "x") for c in characters]
    config = TokenizerConfig(kind="char", vocabulary_size=20_000, normalization="identity")
    model = learn_vocabulary(pairs, config).source
    lost = {character: model.unknown(f"x{character}y") for character in characters}
    assert {c for c, unknown in lost.items() if unknown} == {*RESERVED, "▁"}
    decoded = model.decode(model.encode([pair.source for pair in pairs]))
    changed = {c for c, text in zip(characters, decoded, strict=True) if text != f"x{c}y"}
    assert changed == {*RESERVED, "▁"}


# What a split at spaces could get wrong: spaces in a row and of other kinds, combining marks behind
# a space, characters that normalisation takes apart, text without spaces, lines over the limit.
ODD_TEXTS = [
    *(
        "a  dog   sleeps ",
        "  a\tdog\u00a0sleeps",
        "a\u3000dog\u2003sleeps\r",
        "e \u0301 e\u0301 e ´ ´e",
    ),
    *(
        "ﬁ ½ ① ㍿ Å ℌ",
        "狗在睡觉。狗喜欢吃东西，",
        "สุนัขกำลังนอนหลับ" * 9,
        "\u200bdog\u200d \ufeffdog\x07 x",
    ),
    *("dog " * 400 + "cat", "äö" * 2500, "https://dog.example/" + "sleeps/" * 20, "", " ", "\t"),
]


@pytest.mark.parametrize(
    ("kind", "size", "coverage"),
    [
        *(("bpe", 260, 1.0), ("bpe", 180, 0.98), ("char", 260, 1.0), ("char", 260, 0.98)),
        *(("word", 70, 1.0), ("word", 20, 0.98)),
    ],
)
def test_learning_from_words_gives_what_learning_from_lines_gives(
    kind: Any, size: int, coverage: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [SentencePair(text, text[::2]) for text in (*ODD_TEXTS, *TEXTS)]
    config = TokenizerConfig(kind=kind, vocabulary_size=size, character_coverage=coverage)
    counted = learn_vocabulary(pairs, config).source.model
    monkeypatch.setattr(vocabulary, "_sentences", lambda lines, config: (lines, "text"))
    assert learn_vocabulary(pairs, config).source.model == counted


@pytest.mark.parametrize(
    ("kind", "normalization", "alphabet", "separator"),
    [
        ("bpe", "nmt_nfkc", "abcdefgh", " "),  # few different words
        ("bpe", "nmt_nfkc", "狗在睡觉喜欢吃东", ""),  # hardly any line occurs twice
        ("bpe", "identity", "abcdefgh", " "),
        ("unigram", "nmt_nfkc", "abcdefgh", " "),
    ],
)
def test_memory_for_learning_does_not_grow_with_the_text(
    kind: str, normalization: str, alphabet: str, separator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SentencePiece gets at most the text that is allowed, evenly spread; so much is kept at once.

    Source and target have the same share, although their lines take turns.
    """
    monkeypatch.setattr(vocabulary, "_SAMPLED_CHARACTERS", 20_000)
    random = Random(1)
    words = ["".join(random.choices(alphabet, k=4)) for _ in range(99)]

    def line(number: int) -> str:
        return separator.join([str(number % 10), *random.choices(words, k=15)])

    config = TokenizerConfig(kind=kind, normalization=normalization)  # type: ignore[arg-type]
    tracemalloc.start()
    given, _ = vocabulary._sentences((line(number) for number in range(5000)), config)
    kept, peak = list(given), tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400_000  # the text has 300,000 characters or more, and takes three times as much
    assert sum(map(len, kept)) < 25_000
    if kind != "bpe" or not separator:
        sides = Counter(int(text[0]) % 2 for text in kept)
        assert abs(sides[0] - sides[1]) <= 1 and sum(map(len, kept)) > 6_000


def test_a_text_of_reserved_characters_alone_says_so() -> None:
    with pytest.raises(DataError, match=r"only characters that SentencePiece keeps .* \(▅, NUL\)"):
        learn_vocabulary([SentencePair("▅▅", "\0")], TokenizerConfig())


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word"])
def test_vocabulary_larger_than_the_text_allows_names_the_largest(kind: str) -> None:
    with pytest.raises(DataError, match=r"is 5000, but .* both languages allows at most") as error:
        learn(kind, vocabulary_size=5000)
    [largest] = re.findall(r"set tokenizer.vocabulary_size to (\d+) or less", str(error.value))
    assert learn(kind, vocabulary_size=int(largest)).target.size == int(largest)
    with pytest.raises(DataError, match=f"at most {largest}"):
        learn(kind, vocabulary_size=int(largest) + 1)


def test_vocabulary_smaller_than_the_alphabet_names_the_smallest() -> None:
    message = "is 10, but .* the source language needs at least"
    with pytest.raises(DataError, match=message) as error:
        learn(vocabulary_size=10, shared=False)
    [smallest] = re.findall(r"at least (\d+), one for each character; raise it", str(error.value))
    pairs = [SentencePair(pair.source, pair.source) for pair in PAIRS]
    config = TokenizerConfig(vocabulary_size=int(smallest), shared=False)
    assert learn_vocabulary(pairs, config).source.size == int(smallest)


@pytest.mark.parametrize("kind", ["char", "word"])
def test_a_vocabulary_has_room_for_tags(kind: Any) -> None:
    config = TokenizerConfig(kind=kind, vocabulary_size=8)
    message = (
        "vocabulary_size is 8, and the special symbols, tags and bytes of both languages alone"
    )
    with pytest.raises(DataError, match=message):
        learn_vocabulary(PAIRS, config, [f">>{tag}<<" for tag in "abcde"])


@pytest.mark.parametrize("pairs", [[], [SentencePair("", " ")]])
def test_blank_text_is_refused(pairs: list[SentencePair]) -> None:
    with pytest.raises(DataError, match="training text of both languages has no characters to"):
        learn_vocabulary(pairs, TokenizerConfig())


@pytest.mark.parametrize("after", [0, 3, 5000])
def test_an_error_of_the_reader_is_raised(after: int) -> None:
    def pairs() -> Iterator[SentencePair]:
        yield from PAIRS * after
        raise DataError("line 7 is broken")

    with pytest.raises(DataError, match="line 7 is broken"):
        learn_vocabulary(pairs(), TokenizerConfig(vocabulary_size=60))


CHOICES: dict[str, dict[str, Any]] = {
    "sentencepiece's own": {},
    "all at the end": {"unk_id": 4, "bos_id": 3, "eos_id": 2, "pad_id": 1},
    "no begin, no padding": {"bos_id": -1, "pad_id": -1},
    "ours": {"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3},
    "named otherwise": {"pad_id": 3, "pad_piece": "[PAD]", "bos_piece": "[CLS]"},
    "our names for text": {"user_defined_symbols": ["<pad>"]},
}


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_given_model_cuts_text_as_before(tmp_path: Path, choice: str, kind: Any) -> None:
    size = SIZES[kind]
    options = CHOICES[choice]
    if choice == "all at the end":
        options = {name: size - place for name, place in options.items()}
    path = foreign_model(tmp_path / "foreign.model", kind, size, **options)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ours = adopt_vocabulary(TokenizerConfig(kind=kind, model=str(path)))
    assert ours.shared
    for text in TEXTS:
        (ids,) = ours.target.encode([text])
        assert [ours.target.pieces[i] for i in ids[:-1]] == theirs.encode(text, out_type=str)
        assert ids[-1] == EOS and not {PAD, UNK, BOS} & set(ids)
        assert ours.target.decode([ids]) == [text]
    assert UNK in ours.source.encode(["%"])[0]
    ours.save(tmp_path / "saved")
    again = Tokenizer.load(tmp_path / "saved")
    assert again.source.encode(["the house"]) == ours.source.encode(["the house"])


def test_each_side_may_bring_its_model(tmp_path: Path) -> None:
    models = [foreign_model(tmp_path / "a.model"), foreign_model(tmp_path / "b.model", size=70)]
    config = TokenizerConfig(shared=False, model=str(models[0]), target_model=str(models[1]))
    tokenizer = adopt_vocabulary(config)
    # one symbol, padding, joins the three that SentencePiece has by itself
    assert tokenizer.source.size == 61
    assert tokenizer.target.size == 71


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (None, DataError, "no such file; check tokenizer.model"),
        (b"no model\n", DataError, "not a SentencePiece model"),
        (b"", DataError, "it has no pieces"),
        ("unigram", ConfigError, r"kind is bpe, but .*a\.model is a unigram model"),
    ],
)
def test_a_file_that_is_no_model_or_one_of_another_kind_is_refused(
    tmp_path: Path, data: bytes | str | None, error: type[Exception], message: str
) -> None:
    path = tmp_path / "a.model"
    if isinstance(data, str):
        foreign_model(path, data, 33)
    elif data is not None:
        path.write_bytes(data)
    with pytest.raises(error, match=message):
        adopt_vocabulary(TokenizerConfig(model=str(path)))


@pytest.mark.parametrize(
    "keys",
    [
        "target_model: b",
        "model: a, target_model: b",
        "shared: false, model: a",
        "shared: false, target_model: b",
    ],
)
def test_models_must_fit_the_sides(keys: str) -> None:
    with pytest.raises(ConfigError, match=r"with tokenizer\.shared: .* or neither, got model: "):
        parse_config(f"tokenizer: {{{keys}}}")


def test_no_size_below_the_least_one_is_advised() -> None:
    with pytest.raises(DataError, match=r"too little .*: it allows at most \d bpe entries, and"):
        learn_vocabulary([SentencePair("a", "a")], TokenizerConfig(vocabulary_size=8))


def test_a_message_names_at_most_twenty_tags() -> None:
    tags = [f">>{number}<<" for number in range(200)]
    config = TokenizerConfig(vocabulary_size=260)
    tokenizer = learn_vocabulary(PAIRS * 20, config, tags)
    with pytest.raises(ConfigError, match=r">>19<< and 180 more\); use one of them") as error:
        check_tags(tokenizer, [">>fr<<"], "--to fr")
    assert len(str(error.value)) < 400
