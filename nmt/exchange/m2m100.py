"""Import of M2M-100 and NLLB-200 of Hugging Face, models that translate between many languages.

Both are of the class `M2M100ForConditionalGeneration`. Their rows are in the order of fairseq: <s>,
<pad>, </s>, <unk>, the pieces of SentencePiece, the languages. Of M2M-100, vocab.json has the rows
of the pieces; NLLB has none, and a row is the id in SentencePiece plus 1. The tokens of languages,
`__de__` or `deu_Latn`, become tags of ours, `>>de<<` or `>>deu_Latn<<`.

https://huggingface.co/docs/transformers/model_doc/nllb
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nmt.data.tokens.foreign_vocabulary import ForeignVocabulary
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.data.tokens.vocabulary import pieces_of
from nmt.errors import DataError, ExchangeError
from nmt.exchange.huggingface import (
    CARD,
    CONFIG,
    GENERATION,
    TOKENIZER,
    VOCABULARY,
    check_weights,
    read_decoding,
    read_rows,
    warn_of_search,
)
from nmt.exchange.huggingface_files import abbreviate, license_of, parse_json
from nmt.exchange.huggingface_names import M2M100, read_config, vocabulary_sizes
from nmt.exchange.imported import (
    ImportedModel,
    check_links,
    file_digests,
    read_small_file,
    warn_of_lack,
)
from nmt.exchange.stored_weights import StoredWeights
from nmt.recipe.config import spell_tag

SEGMENTATION = "sentencepiece.bpe.model"
SPECIAL_TOKENS, ADDED_TOKENS = "special_tokens_map.json", "added_tokens.json"
KEPT = (CONFIG, GENERATION, TOKENIZER, VOCABULARY, SEGMENTATION, SPECIAL_TOKENS, ADDED_TOKENS)
"""the small files that an import keeps, so that an export can restore them"""
WEIGHTS = (
    *("model.safetensors", "model-*.safetensors"),
    *("pytorch_model.bin", "pytorch_model-*.bin"),
)
"""the names of the weights; those of a large model may be in several files"""
FIRST_PIECES = ["<unk>", "<s>", "</s>"]
"""of the SentencePiece model of fairseq, which has <pad> in row 1: so a row is the id plus 1"""
SPECIAL_ROWS = {BOS: 0, PAD: 1, EOS: 2, UNK: 3}
"""{our special id: row of fairseq}"""
_CODE = re.compile(r"__(?P<m2m>[a-z]{2,3}(?:_[A-Za-z]{2,8})*)__|(?P<nllb>[a-z]{3}_[A-Z][a-z]{3})")
_ROW = re.compile("[0-9]{1,9}")


def is_m2m100(folder: Path) -> bool:
    """Whether the configuration in a folder is that of such a model.

    Raises:
        ExchangeError: it is damaged.
    """
    settings = parse_json(read_small_file(folder / CONFIG), folder / CONFIG)
    return bool(settings.get("model_type") == M2M100)


def import_m2m100(folder: Path) -> ImportedModel:
    """Read a folder of such a model; the weights are read when they are asked for.

    Raises:
        ExchangeError: a file is missing or damaged, or nmt cannot compute the model.
    """
    wanted = [path for name in (*KEPT, *WEIGHTS, CARD) for path in sorted(folder.glob(name))]
    check_links(folder, wanted)
    files = [path for path in wanted if path.is_file()]
    originals = {path.name: read_small_file(path) for path in files if path.name in KEPT}
    settings = parse_json(originals[CONFIG], folder / CONFIG)
    config = read_config(settings, str(folder / CONFIG))
    found = (name for name in WEIGHTS if any(path.match(name) for path in files))
    if (pattern := next(found, None)) is None:
        raise ExchangeError(f"{folder}: there are no weights; expected {' or '.join(WEIGHTS)}")
    weights = StoredWeights([path for path in files if path.match(pattern)])
    sizes = vocabulary_sizes(settings, str(folder / CONFIG))
    names = check_weights(weights.shapes, config, sizes, folder / pattern)
    vocabulary = read_vocabulary(originals, settings, folder)
    generation = settings  # older models have the settings of the search in config.json
    if GENERATION in originals:
        generation = parse_json(originals[GENERATION], folder / GENERATION)
    searched = {name: value for name, value in generation.items() if name != "forced_bos_token_id"}
    warn_of_search(searched, vocabulary.specials, str(folder))
    tokenizer = parse_json(originals.get(TOKENIZER, b"{}"), folder / TOKENIZER)
    if tokenizer.get("legacy_behaviour"):
        warn_of_lack(str(folder), "legacy_behaviour", "true")
    card = (folder / CARD).read_text("utf-8", "replace") if (folder / CARD).is_file() else ""
    codes = language_codes(vocabulary)
    source, target = (_code(tokenizer.get(name), codes) for name in ("src_lang", "tgt_lang"))
    return ImportedModel(
        config=config,
        weights=weights.renamed(names),
        vocabularies=(vocabulary, vocabulary),
        decoding=read_decoding(generation, vocabulary.specials[UNK], str(folder)),
        originals=originals,
        languages=(source, target),
        language_tags=codes,
        provenance={
            "format": "huggingface",
            "source": os.path.abspath(folder),  # also of "."
            "license": license_of(card),
            "sha256": file_digests(files),
        },
    )


def read_vocabulary(
    files: Mapping[str, bytes], settings: Mapping[str, Any], folder: Path
) -> ForeignVocabulary:
    """Return the vocabulary of both languages, whose tags are its `controls`.

    Args:
        files: {name: content} of the original files.
        settings: The content of config.json.
        folder: Where the files are, for error messages.

    Raises:
        ExchangeError: a file is missing or damaged, or its special tokens are not those of fairseq.
    """
    rows = _rows_of_pieces(files, folder)
    _check_specials(settings, rows, str(folder / CONFIG))
    end_of_pieces = max(rows.values(), default=0) + 1
    languages = _language_rows(files, end_of_pieces, folder)
    if not languages:
        raise ExchangeError(
            f"{folder}: no file names the languages of the model; expected them in {TOKENIZER}, "
            f"{SPECIAL_TOKENS} (additional_special_tokens) or {ADDED_TOKENS}"
        )
    if taken := set(languages.values()) & set(SPECIAL_ROWS.values()):
        raise ExchangeError(
            f"{folder}: a language has row {min(taken)}, which is that of a special token; rows of "
            "languages begin behind the pieces"
        )
    size, _ = vocabulary_sizes(settings, str(folder / CONFIG))
    special = {piece: row for piece, row in rows.items() if row in SPECIAL_ROWS.values()}
    text_rows = {piece: row for piece, row in rows.items() if piece not in special}
    tags = {spell_tag(code): row for code, row in languages.items()}
    return ForeignVocabulary(
        files[SEGMENTATION], text_rows | tags, size, SPECIAL_ROWS, frozenset(tags)
    )


def _rows_of_pieces(files: Mapping[str, bytes], folder: Path) -> dict[str, int]:
    """Return the row of each piece, by vocab.json or by the order of fairseq."""
    if SEGMENTATION not in files:
        raise ExchangeError(
            f"{folder / SEGMENTATION}: the file is missing, which splits text into pieces; take it "
            "from the model that this one was trained from"
        )
    where = str(folder / SEGMENTATION)
    try:
        pieces = pieces_of(files[SEGMENTATION], where)
    except DataError as error:
        raise ExchangeError(str(error)) from error
    if VOCABULARY in files:
        rows = read_rows(files[VOCABULARY], folder / VOCABULARY)
    elif pieces[: len(FIRST_PIECES)] == FIRST_PIECES:
        first = len(FIRST_PIECES)
        rows = {piece: i + 1 for i, piece in enumerate(pieces) if i >= first}
    else:
        raise ExchangeError(
            f"{where}: begins with {abbreviate(pieces[: len(FIRST_PIECES)])}, expected "
            f"{FIRST_PIECES}; without {VOCABULARY} the rows of the pieces are not known"
        )
    missing = {piece for piece in pieces if piece not in FIRST_PIECES} - rows.keys()
    if missing:
        raise ExchangeError(
            f"{folder / VOCABULARY}: has no row for {len(missing):,} pieces of {SEGMENTATION}, "
            f"such as {abbreviate(min(missing))}; they are of different models"
        )
    return rows


def language_codes(vocabulary: ForeignVocabulary) -> tuple[str, ...]:
    """Return the codes of the languages of a vocabulary, in the order of their rows."""
    tags = sorted(vocabulary.controls, key=vocabulary.rows.__getitem__)
    return tuple(tag.strip("<>") for tag in tags)


def _code(token: object, codes: tuple[str, ...]) -> str:
    """Return the code of a language that a tokenizer names; und, undetermined, for another."""
    match = _CODE.fullmatch(token) if isinstance(token, str) else None
    code = (match["m2m"] or match["nllb"]) if match else token
    return str(code) if code in codes else "und"


def _language_rows(files: Mapping[str, bytes], end_of_pieces: int, folder: Path) -> dict[str, int]:
    """Return {code of a language: row}, from all places that name languages.

    added_tokens.json and added_tokens_decoder have rows. The additional tokens of the other lists
    follow the pieces in their order. Where two places differ, the first is right.
    """
    contents = [
        parse_json(files.get(name, b"{}"), folder / name)
        for name in (ADDED_TOKENS, TOKENIZER, SPECIAL_TOKENS)
    ]
    added, settings, special = contents
    decoder = settings.get("added_tokens_decoder")
    numbered = decoder.items() if isinstance(decoder, dict) else ()
    places: list[list[tuple[Any, Any]]] = [
        [*added.items()],
        [(_spelling(token), int(row)) for row, token in numbered if _ROW.fullmatch(row)],
    ]
    for listed in (special, settings):  # the languages follow the pieces, in this order
        for key in ("additional_special_tokens", "extra_special_tokens"):
            tokens = listed.get(key)
            rows = enumerate(tokens if isinstance(tokens, list) else (), end_of_pieces)
            places.append([(_spelling(token), row) for row, token in rows])
    found: dict[str, int] = {}
    for place in places:
        matches = [(_CODE.fullmatch(t), row) for t, row in place if isinstance(t, str)]
        named = {m["m2m"] or m["nllb"]: row for m, row in matches if m and type(row) is int}
        taken = set(found.values())
        found = {code: row for code, row in named.items() if row not in taken} | found
    return found


def _spelling(token: object) -> object:
    """Return the text of a token, which may be an object with its properties."""
    return token.get("content") if isinstance(token, dict) else token


def _check_specials(settings: Mapping[str, Any], rows: Mapping[str, int], where: str) -> None:
    """Check that the special tokens have the rows of fairseq.

    Raises:
        ExchangeError: one has another row.
    """
    names = {
        "bos_token_id": BOS,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "decoder_start_token_id": EOS,
    }
    for name, token in names.items():
        expected = SPECIAL_ROWS[token]
        if settings.get(name, expected) != expected:
            raise ExchangeError(
                f"{where}: {name} is {abbreviate(settings[name])}; nmt reads only {expected}, that "
                "of fairseq"
            )
    in_rows = {"<s>": BOS, "<pad>": PAD, "</s>": EOS, "<unk>": UNK}
    for piece, token in in_rows.items():
        if rows.get(piece, SPECIAL_ROWS[token]) != SPECIAL_ROWS[token]:
            raise ExchangeError(
                f"{where}: {piece} has the row {rows[piece]:,}, expected {SPECIAL_ROWS[token]}"
            )
