"""A vocabulary of many languages, trimmed to some of them and to the text of a recipe.

Rows of pieces that the text does not need are dropped, from the matrices and from SentencePiece. A
text whose pieces are all kept is split into the same ones: BPE builds a piece in the same steps
inside a longer word as alone, so the pieces of these steps are kept as well.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import sentencepiece

from nmt.data.languages import language_among, language_of_tag
from nmt.data.text.language_identification import share_in_scripts
from nmt.data.tokens.foreign_vocabulary import ForeignVocabulary
from nmt.data.tokens.tokenizer import SPACE
from nmt.data.tokens.vocabulary import KINDS, parse_model
from nmt.errors import ConfigError, ExchangeError
from nmt.exchange.imported import ImportedModel
from nmt.recipe.config import spell_tag

LINES_AT_ONCE = 10_000


def trim(model: ImportedModel, languages: Iterable[str], lines: Iterable[str]) -> ImportedModel:
    """Return a model with the tags of these languages alone, and what the lines need of its pieces.

    Single letters of the scripts of the languages stay too, with digits and signs.

    Raises:
        ConfigError: the model lacks a language, or fewer than two are given.
        ExchangeError: the model is none of many languages.
    """
    if not model.language_tags:
        raise ExchangeError(
            f"{model.provenance['source']}: only a model of many languages, such as NLLB, is "
            "trimmed; leave out `languages` and `trim_by`"
        )
    codes = [*dict.fromkeys(language_among(each, model.language_tags) for each in languages)]
    if len(codes) < 2:
        raise ConfigError(
            f"a model translates between two languages at least, got {', '.join(codes)}; name "
            "another one (`languages`)"
        )
    vocabulary = _trimmed(model.vocabularies[0], codes, lines)
    found = [_kept(code, codes) for code in model.languages]
    if found == ["und", "und"]:
        found = codes[:2]
    return replace(
        model,
        vocabularies=(vocabulary, vocabulary),
        language_tags=tuple(code for code in model.language_tags if code in codes),
        languages=(found[0], found[1]),
        originals={},
    )


def _kept(language: str, codes: list[str]) -> str:
    """Return which of the kept codes stands for a language; und, undetermined, if none does."""
    try:
        return language_among(language, codes)
    except ConfigError:
        return "und"


def _trimmed(
    vocabulary: ForeignVocabulary, codes: list[str], lines: Iterable[str]
) -> ForeignVocabulary:
    proto = parse_model(vocabulary.segmentation, "the SentencePiece model")
    scores = {piece.piece: piece.score for piece in proto.pieces if piece.type == piece.NORMAL}
    wanted = _pieces_of(vocabulary.segmentation, lines) & scores.keys()
    scripts = [script for code in codes for script in language_of_tag(code).scripts]
    letters = (piece for piece in scores if len(piece) == 1)
    wanted |= {x for x in letters if not x.isalpha() or share_in_scripts(x, scripts) == 1}
    if KINDS[proto.trainer_spec.model_type] == "bpe":
        wanted = set().union(*(_steps(piece, scores) for piece in wanted))
    tags = {spell_tag(code) for code in codes}
    kept = [piece for piece in proto.pieces if piece.type != piece.NORMAL or piece.piece in wanted]
    del proto.pieces[:]
    proto.pieces.extend(kept)
    rows = {piece: row for piece, row in vocabulary.rows.items() if piece in wanted | tags}
    return replace(
        vocabulary,
        segmentation=proto.SerializeToString(),
        rows=rows,
        controls=frozenset(tags),
        kept=frozenset({*rows.values(), *vocabulary.specials.values()}),
    )


def _pieces_of(segmentation: bytes, lines: Iterable[str]) -> set[str]:
    """Return the pieces that the lines are split into, and the mark of a space."""
    processor: Any = sentencepiece.SentencePieceProcessor(model_proto=segmentation)
    ids: set[int] = set()
    for batch in _batches(lines):
        ids.update(*processor.encode(batch))
    return {SPACE, *(processor.id_to_piece(i) for i in ids)}


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    for line in lines:
        batch.append(line)
        if len(batch) == LINES_AT_ONCE:
            yield batch
            batch = []
    yield batch


def _steps(piece: str, scores: dict[str, float]) -> set[str]:
    """Return the pieces that BPE builds a piece from, itself included."""
    symbols, found = list(piece), {piece, *piece}
    while len(symbols) > 1:
        pairs = ((symbols[i] + symbols[i + 1], i) for i in range(len(symbols) - 1))
        known = [(-scores[pair], i) for pair, i in pairs if pair in scores]
        if not known:
            break
        _score, i = min(known)
        symbols[i : i + 2] = ["".join(symbols[i : i + 2])]
        found.add(symbols[i])
    return found & scores.keys()
