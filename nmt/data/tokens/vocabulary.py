"""Builds the vocabulary: learns it from text, or converts an existing SentencePiece model.

The paper's section 5.1 shares one byte-pair vocabulary between both languages; `shared: false`
makes one for each. A character vocabulary has the characters of the text, at most
`vocabulary_size` entries; the other kinds have exactly that many.
"""

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from nmt.data.text.lines import read_errors
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import ERRORS_ONLY, UNKNOWN, SubwordModel, Tokenizer
from nmt.errors import ConfigError, DataError
from nmt.machine.memory import check_threads
from nmt.recipe.config import MIN_VOCABULARY_SIZE, TokenizerConfig

# SentencePiece silently skips training lines over 4192 bytes; 1000 characters never have more
_MAX_LINE_CHARACTERS = 1000
_THREADS = 16  # of SentencePiece while it learns, by default
# Characters that SentencePiece keeps for itself and that no vocabulary can have. It would skip a
# training line with ▅, and the letters that occur nowhere else would be unknown.
_RESERVED = re.compile("[\0\x1f▅]")
# What is learnt from is kept in memory: each different word, and of lines and of longer words,
# which hardly repeat, a sample of so many characters. SentencePiece itself takes 20 bytes for each
# character of a line with unigram, 4 with the other kinds, and 500 for each word.
_LONGEST_WORD = 40
_SAMPLED_CHARACTERS = 20_000_000

NAMED_TAGS = 20
"""the most tags that a message lists"""

KINDS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
"""`tokenizer.kind` of each `model_type` in sentencepiece_model.proto."""
UNKNOWN_TYPE, CONTROL_TYPE = 2, 3  # types of pieces in sentencepiece_model.proto
SPECIALS = {"pad": "<pad>", "unk": "<unk>", "bos": "<s>", "eos": "</s>"}  # in order of their ids


def learn_vocabulary(
    pairs: Iterable[SentencePair],
    config: TokenizerConfig,
    tags: Sequence[str] = (),
    symbols: Sequence[str] = (),
) -> Tokenizer:
    """Learn a vocabulary from `pairs`; equal pairs and settings give an equal vocabulary.

    `pairs` is iterated once if the vocabulary is shared, else once for each language. The source
    side has an entry for each of `tags`, such as `>>fr<<`, among its `vocabulary_size`, and both
    sides have one for each of `symbols`, which no text is encoded to, such as `<context>`.

    Raises:
        DataError: the text is blank, or too small or too varied for `vocabulary_size`.
    """
    if config.shared:
        both = (text for pair in pairs for text in pair)
        return Tokenizer(_learn(both, config, "both languages", [*symbols, *tags]))
    of_source, controls = (pair.source for pair in pairs), [*symbols, *tags]
    source = _learn(of_source, config, "the source language", controls)
    target = _learn((pair.target for pair in pairs), config, "the target language", symbols)
    return Tokenizer(source, target)


def check_tags(tokenizer: Tokenizer, tags: Iterable[str], where: str) -> None:
    """Check that the source vocabulary has all `tags`; `where` begins the error message.

    Raises:
        ConfigError: the vocabulary lacks a tag.
    """
    for tag in tags:
        if tag not in tokenizer.source.tags:
            known = list(tokenizer.source.tags)
            its_tags = ", ".join(known[:NAMED_TAGS]) or "none"
            if others := len(known[NAMED_TAGS:]):
                its_tags += f" and {others} more"
            raise ConfigError(
                f"{where}: the vocabulary has no tag {tag} (its tags: {its_tags}); use one of "
                "them, or train with a vocabulary that is learnt from tagged text "
                "(data.train.tags, without tokenizer.model)"
            )


def adopt_vocabulary(config: TokenizerConfig) -> Tokenizer:
    """Load the configured SentencePiece models; PAD, UNK, BOS and EOS move to the ids 0 to 3.

    Raises:
        DataError: a file is missing or is not a SentencePiece model.
        ConfigError: a model is of another kind than `tokenizer.kind`.
    """
    # one model for both languages, or those of source and target
    models = [_adopt(Path(path), config.kind) for path in config.models]
    return Tokenizer(*models)


def symbol_id(model: SubwordModel, symbol: str) -> int | None:
    """Return the id of a symbol that no text is encoded to, such as `<context>`; None: none has it.

    A piece of text that is spelled like the symbol is not it.
    """
    if symbol.encode() not in model.model or symbol not in model.pieces:
        return None
    found = model.pieces.index(symbol)
    return None if model.decode([[found]])[0] else found


def with_symbols(tokenizer: Tokenizer, symbols: Sequence[str]) -> Tokenizer:
    """Return a tokenizer whose sides have all `symbols`; those that lack one get it at the end."""

    def side(model: SubwordModel) -> SubwordModel:
        missing = [symbol for symbol in symbols if symbol_id(model, symbol) is None]
        if not missing:
            return model
        proto = parse_model(model.model, "tokenizer")
        for symbol in missing:
            proto.pieces.add(piece=symbol, score=0.0, type=CONTROL_TYPE)
        return SubwordModel(proto.SerializeToString())

    if tokenizer.shared:
        return Tokenizer(side(tokenizer.source))
    return Tokenizer(side(tokenizer.source), side(tokenizer.target))


def kind_of(path: Path) -> str:
    """Return the kind of a SentencePiece model in a file, as `tokenizer.kind` names it.

    Raises:
        DataError: the file is missing or is no SentencePiece model of a known kind.
    """
    with read_errors(path, "tokenizer.model"):
        model = path.read_bytes()
    proto = parse_model(model, str(path))
    kind = KINDS.get(proto.trainer_spec.model_type)
    if kind is None:
        raise DataError(f"{path}: a SentencePiece model of an unknown kind")
    return kind


def _adopt(path: Path, kind: str) -> SubwordModel:
    """Return the model in a file, with PAD, UNK, BOS and EOS moved to the ids 0 to 3.

    A special symbol that the model lacks is added; the other pieces keep their order. Texts are
    split into the same pieces as before, because SentencePiece splits by scores and not by ids.
    What decoding writes for UNK (`unk_surface`) becomes that of `unknown_surface`.

    Raises:
        DataError: the file is missing or is not a SentencePiece model.
        ConfigError: the model is of another kind than `kind`.
    """
    with read_errors(path, "tokenizer.model"):
        model = path.read_bytes()
    proto = parse_model(model, str(path))
    spec = proto.trainer_spec
    kind_in_file = KINDS.get(spec.model_type, "unknown")
    if kind_in_file != kind:
        raise ConfigError(
            f"tokenizer.kind is {kind}, but {path} is a {kind_in_file} model; "
            "set tokenizer.kind to it"
        )
    old_ids = {name: getattr(spec, f"{name}_id") for name in SPECIALS}
    if [*old_ids.values()] == [0, 1, 2, 3] and spec.unk_surface == unknown_surface(kind):
        return SubwordModel(model)  # nmt has learnt it: nothing to change
    pieces = list(proto.pieces)
    spellings = {piece.piece for piece in pieces}
    specials = []
    for new_id, (name, spelling) in enumerate(SPECIALS.items()):
        piece = type(pieces[0])()  # an empty one; protobuf makes the class of pieces
        if 0 <= old_ids[name] < len(pieces):
            piece.CopyFrom(pieces[old_ids[name]])
        else:
            while spelling in spellings:  # a piece of text may be spelled like this
                spelling = f"<{spelling}>"
            piece.piece, piece.score = spelling, 0.0
            piece.type = UNKNOWN_TYPE if name == "unk" else CONTROL_TYPE
        setattr(spec, f"{name}_id", new_id)
        setattr(spec, f"{name}_piece", piece.piece)
        specials.append(piece)
    spec.unk_surface = unknown_surface(kind)
    ordinary = [piece for i, piece in enumerate(pieces) if i not in old_ids.values()]
    del proto.pieces[:]
    proto.pieces.extend([*specials, *ordinary])
    return SubwordModel(proto.SerializeToString())


def pieces_of(model: bytes, where: str) -> list[str]:
    """Return the piece of each id of a SentencePiece model, which may be of any program.

    Raises:
        DataError: `model` is not a SentencePiece model; the message begins with `where`.
    """
    return [piece.piece for piece in parse_model(model, where).pieces]


def split_with(model: bytes, texts: Sequence[str]) -> list[list[str]]:
    """Return the pieces into which a SentencePiece model, of any program, splits each text."""
    processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces: list[list[str]] = processor.encode(list(texts), out_type=str)
    return pieces


def parse_model(model: bytes, where: str) -> Any:
    """Return a serialised SentencePiece model as a protobuf message, which has pieces.

    Raises:
        DataError: `model` is not a SentencePiece model; the message begins with `where`.
    """
    from sentencepiece import sentencepiece_model_pb2

    proto: Any = sentencepiece_model_pb2.ModelProto()
    try:
        proto.ParseFromString(model)
    except Exception as error:  # the base class of protobuf's DecodeError cannot be imported
        raise DataError(f"{where}: not a SentencePiece model ({error})") from error
    if not proto.pieces:
        raise DataError(f"{where}: not a SentencePiece model: it has no pieces")
    return proto


def unknown_surface(kind: str) -> str:
    """Return what decoding writes for the unknown symbol, as SentencePiece's `unk_surface`.

    At word level a piece is a whole word, so it includes the space before the word.
    """
    return f" {UNKNOWN}" if kind == "word" else UNKNOWN


def _lines_to_learn(texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts without reserved characters, in lines of at most `_MAX_LINE_CHARACTERS`.

    Longer texts are split, best at spaces.
    """
    for whole_text in texts:
        text = _RESERVED.sub("", whole_text)
        start = 0  # of what is left; to copy the rest for each part would take quadratic time
        while len(text) - start > _MAX_LINE_CHARACTERS:
            space = text.rfind(" ", start + 1, start + _MAX_LINE_CHARACTERS)
            end = space if space > 0 else start + _MAX_LINE_CHARACTERS
            yield text[start:end]
            start = end
        yield text[start:]


def _spread_sample(texts: Iterable[str], most: int) -> tuple[list[str], int]:
    """Return every n-th of the texts, and n: 1, 3, 9, …, so that they have `most` characters.

    An odd n takes as much of either language where the lines of two take turns.
    """
    kept, every, size = list[str](), 1, 0  # size in characters
    for number, text in enumerate(texts):
        if number % every == 0:
            kept.append(text)
            size += len(text)
        while size > most and len(kept) > 1:
            kept, every = kept[::3], 3 * every
            size = sum(map(len, kept))
    return kept, every


def _count_words(lines: Iterable[str]) -> Counter[str]:
    """Count the words between spaces. Of long ones a sample stands for all if they are many."""
    counts = Counter[str]()

    def long_words() -> Iterator[str]:
        for line in lines:
            words = line.replace("\t", " ").split(" ")
            if max(map(len, words)) > _LONGEST_WORD:
                yield from (word for word in words if len(word) > _LONGEST_WORD)
                words = [word for word in words if len(word) <= _LONGEST_WORD]
            counts.update(words)

    sampled, every = _spread_sample(long_words(), _SAMPLED_CHARACTERS)
    for word in sampled:
        counts[word] += every
    del counts[""]  # of several spaces in a row
    return counts


def _sentences(lines: Iterable[str], config: TokenizerConfig) -> tuple[Iterable[str], str]:
    """Return what SentencePiece is to learn from, and its `input_format`, text or tsv.

    In tsv a line is a word and how often it occurs. The vocabulary is the same, because the kinds
    other than unigram look at words alone, but it takes a fraction of the memory. Only nmt_nfkc
    treats a tab as a space and ignores how many spaces there are.
    """
    if config.kind == "unigram" or not config.normalization.startswith("nmt_nfkc"):
        return _spread_sample(lines, _SAMPLED_CHARACTERS)[0], "text"
    return (f"{word}\t{count}" for word, count in _count_words(lines).items()), "tsv"


def _learn(
    texts: Iterable[str], config: TokenizerConfig, side: str, controls: Sequence[str]
) -> SubwordModel:
    """Learn one SentencePiece model; `side` says in error messages whose text `texts` are.

    Raises:
        DataError: the text does not suit the settings; or what the iteration of `texts` raises.
    """
    model = io.BytesIO()
    sentences, input_format = _sentences(_lines_to_learn(texts), config)
    keeps_spaces = config.normalization == "identity"
    special_ids: dict[str, Any] = {f"{name}_id": i for i, name in enumerate(SPECIALS)}
    check_threads(_THREADS, 32 << 20)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            input_format=input_format,
            model_writer=model,
            model_type=config.kind,
            vocab_size=config.vocabulary_size,
            character_coverage=config.character_coverage,
            byte_fallback=config.byte_fallback,
            normalization_rule_name=config.normalization,
            remove_extra_whitespaces=not keeps_spaces,
            **special_ids,
            control_symbols=list(controls),
            unk_surface=unknown_surface(config.kind),
            minloglevel=ERRORS_ONLY,
        )
    except RuntimeError as error:
        raise DataError(_explain(str(error), config, side)) from error
    proto = parse_model(model.getvalue(), side)
    proto.trainer_spec.ClearField("input_format")  # the same bytes, whatever it was learnt from
    return SubwordModel(proto.SerializeToString())


def _explain(message: str, config: TokenizerConfig, side: str) -> str:
    """Return an error message of SentencePiece in the terms of our configuration."""
    key = "tokenizer.vocabulary_size"
    if limit := re.search(r"Vocabulary size too high .*<= (\d+)", message):
        if int(limit[1]) < MIN_VOCABULARY_SIZE:
            return (
                f"the training text of {side} is too little for any vocabulary: it allows at most "
                f"{limit[1]} {config.kind} entries, and {key} is at least {MIN_VOCABULARY_SIZE}; "
                "add text"
            )
        return (
            f"{key} is {config.vocabulary_size}, but the training text of {side} allows at most "
            f"{limit[1]} {config.kind} entries; set {key} to {limit[1]} or less, or add text"
        )
    if limit := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
        return (
            f"{key} is {config.vocabulary_size}, but the training text of {side} needs at least "
            f"{limit[1]}, one for each character; raise it or lower tokenizer.character_coverage"
        )
    if "(vocab_size) >= (0)" in message:
        return (
            f"{key} is {config.vocabulary_size}, and the special symbols, tags and bytes of {side} "
            "alone are more; raise it"
        )
    if "sentences_.empty()" in message or "all_chars_count" in message:
        return (
            f"the training text of {side} has no characters to learn, because it is blank or has "
            "only characters that SentencePiece keeps for itself (▅, NUL); expected one sentence "
            "per line"
        )
    return f"SentencePiece cannot learn a vocabulary of {side}: {message}"
