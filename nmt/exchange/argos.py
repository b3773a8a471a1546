"""Argos packages, out: the .argosmodel files of Argos Translate and LibreTranslate.

A package is a zip of one folder: metadata.json, README.md, a CTranslate2 model in model/, the
SentencePiece model of both languages, and in minisbd/ what splits a text into sentences.
https://github.com/argosopentech/argos-translate
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sentencepiece

from nmt.data.languages import language_of_tag, look_up_language
from nmt.data.tokens.tokenizer import EOS, Tokenizer
from nmt.data.tokens.vocabulary import check_tags
from nmt.errors import ConfigError, ExchangeError
from nmt.exchange.argos_sentences import write_splitter
from nmt.exchange.ctranslate2 import translate_with_model, write_model
from nmt.exchange.engine import Quantization, check_has_no_tags
from nmt.exchange.verify import Tolerance, excluded_ids, verify_translations
from nmt.files import check_absent
from nmt.recipe.config import SEVERAL_LANGUAGES, spell_tag
from nmt.run.model import LoadedModel

SUFFIX = ".argosmodel"
METADATA, MODEL, SEGMENTATION, SPLITTER = (
    "metadata.json",
    "model",
    "sentencepiece.model",
    "minisbd",
)
ARGOS_VERSION = "1.11"
"""the first version of Argos Translate that splits sentences by a file in minisbd/"""
CODES = {"pt-BR": "pb", "zh-Hant": "zt"}
"""{our language tag: their code}, where theirs is not that of the language alone"""
SAME_TEXTS = 0.95
"""the share of the texts that Argos Translate must translate as CTranslate2 does: in its batches, a
tie between two tokens may be decided in another way"""
USAGE = """\
from argostranslate import package, translate

package.install_from_path("FILE.argosmodel")
print(translate.translate("A dog sleeps.", "FROM", "TO"))
"""
"""how a package is used, for the model card"""
# Run in a process of its own, because the folders are settings that are read once.
_PROGRAM = """\
import json, sys
from argostranslate import package, translate
path, source, target, texts = json.load(sys.stdin)
package.install_from_path(path)
found = translate.get_translation_from_codes(source, target).underlying
split = [found.sentencizer.split_sentences(text) for text in texts]
print(json.dumps([split, [found.hypotheses(text, 1)[0].value for text in texts]]))
"""


@contextmanager
def create_package(path: Path) -> Iterator[Path]:
    """Yield a folder for the content of a package; after the block the file is there.

    After an error in the block, it is not.

    Raises:
        ConfigError: `path` exists, or has another ending than .argosmodel.
        OSError: a file cannot be written.
    """
    check_absent(path)
    if path.suffix != SUFFIX:
        raise ConfigError(
            f"{path}: a package of Argos has a name such as translate-en_de-1_0{SUFFIX}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as name:
        folder, packed = Path(name) / "package", Path(name) / path.name
        folder.mkdir()
        yield folder
        _pack(folder, packed)
        packed.rename(path)


def _pack(folder: Path, path: Path) -> None:
    """Write the zip of a package, with the name by which Argos installs its folder."""
    metadata = json.loads((folder / METADATA).read_text("utf-8"))
    version = metadata["package_version"].replace(".", "_")
    name = f"translate-{metadata['from_code']}_{metadata['to_code']}-{version}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            archive.write(file, f"{name}/{file.relative_to(folder).as_posix()}")


def export_argos(
    loaded: LoadedModel,
    folder: Path,
    quantization: Quantization,
    version: str = "1.0",
    target_language: str | None = None,
) -> None:
    """Write all of a package but its README.md into an empty folder.

    Of a model of several target languages, `target_language` is the one of the package.

    Raises:
        MissingExtraError: ctranslate2 or onnx is not installed.
        ConfigError: the languages are not known, or the model has no tag for `target_language`.
        ExchangeError: the format cannot hold the model; the message says why.
        OSError: a file cannot be written.
    """
    check_has_no_tags(loaded.config.data, "Argos Translate")
    source, target = languages_of(loaded, target_language)
    tag = spell_tag(target_language) if target_language else ""
    check_tags(loaded.tokenizer, [tag] if tag else [], f"target language {target_language}")
    tokenizer, config = loaded.tokenizer, loaded.config
    _check_decodes(tokenizer)
    metadata = {
        "package_version": version,
        "argos_version": ARGOS_VERSION,
        "from_code": argos_code(source),
        "from_name": language_of_tag(source).name,
        "to_code": argos_code(target),
        "to_name": language_of_tag(target).name,
    }
    (folder / METADATA).write_text(json.dumps(metadata, indent=4) + "\n", "utf-8")
    (folder / SEGMENTATION).write_bytes(tokenizer.source.model)
    (folder / MODEL).mkdir()
    pieces = tokenizer.source.pieces, tokenizer.target.pieces
    excluded = excluded_ids(config.decoding)
    model = folder / MODEL
    write_model(loaded.model, config.model, pieces, model, quantization, excluded, tag)
    (folder / SPLITTER).mkdir()
    write_splitter(source, folder / SPLITTER / f"{metadata['from_code']}.onnx")


def version_in(path: Path) -> str:
    """Return the version in a name such as translate-en_de-1_0.argosmodel, here 1.0; else 1.0."""
    match = re.search(r"-([0-9]+(_[0-9]+)*)$", path.stem)
    return match[1].replace("_", ".") if match else "1.0"


def languages_of(loaded: LoadedModel, target_language: str | None) -> tuple[str, str]:
    """Return the codes of source and target of a package.

    Raises:
        ConfigError: they are not known, or there are several.
    """
    source, target = loaded.config.data.languages
    target = target_language or target
    if {source, target} & {"und", SEVERAL_LANGUAGES}:
        raise ConfigError(
            f"a package of Argos is for one pair of languages, and the run says {source} and "
            f"{target}; give `target_language` for a model of several, or set "
            "data.source_language and data.target_language in config.yaml of the run"
        )
    return source, target


def argos_code(code: str) -> str:
    """Return the code of a language in Argos: of two letters, if it has one."""
    language = look_up_language(code)
    with_script = f"{language.base}-{language.script}"  # also of zh_TW and zh_HK, which name none
    return CODES.get(language.tag) or CODES.get(with_script, language.base)


def _check_decodes(tokenizer: Tokenizer) -> None:
    """Check that translations can be put together with the SentencePiece model of the source.

    Argos has one SentencePiece model. It splits the source, and joins the pieces of the target.

    Raises:
        ExchangeError: a piece would become another text.
    """
    processor = _joiner(tokenizer)
    pieces = tokenizer.target.pieces[EOS + 1 :]
    texts = tokenizer.target.decode([[i] for i in range(EOS + 1, tokenizer.target.size)])
    for piece, expected in zip(pieces, texts, strict=True):
        found = _join(processor, [piece])
        if found != expected.replace("_", " ").removeprefix(" "):
            raise ExchangeError(
                f"a package of Argos has one SentencePiece model, and with that of the source the "
                f"piece {piece!r} of the target becomes {found!r}, expected {expected!r}; train "
                "with tokenizer.shared: true, or export to ctranslate2"
            )


def _joiner(tokenizer: Tokenizer) -> Any:
    """Return the SentencePiece model of a package."""
    return sentencepiece.SentencePieceProcessor(model_proto=tokenizer.source.model)


def _join(processor: Any, pieces: Sequence[str]) -> str:
    """Return the text of target pieces as Argos makes it: underscores become spaces."""
    text = str(processor.decode_pieces(list(pieces))) if pieces else ""
    return text.replace("▁", " ").replace("_", " ").removeprefix(" ")


def verify_argos(
    loaded: LoadedModel,
    folder: Path,
    texts: Sequence[str],
    tolerance: Tolerance,
    language: str | None = None,
) -> str:
    """Verify the model by CTranslate2, and the package by Argos Translate if that is installed.

    `language` is the target language of the package, if the model has several. Returns a summary.

    Raises:
        ExchangeError: too many translations differ, or Argos Translate cannot use the package.
    """
    source = loaded.tokenizer.source
    plain = [source.divide_tags(text)[1] for text in texts]
    translations = translate_with_model(folder / MODEL, source, plain)
    tag = spell_tag(language) if language else ""
    tagged = [tag + text for text in plain]
    summary = "by CTranslate2: " + verify_translations(loaded, tagged, translations, tolerance)
    if importlib.util.find_spec("argostranslate") is None:
        return (
            f"{summary}; not by Argos Translate, which is not installed here "
            "(pip install argos-translate-lt)"
        )
    split, found = _translate_with_argos(folder, plain)
    sentences = [sentence for sentences in split for sentence in sentences]
    pieces = iter(translate_with_model(folder / MODEL, source, sentences))
    processor = _joiner(loaded.tokenizer)
    expected = [
        _join(processor, [piece for _ in sentences for piece in next(pieces).pieces])
        for sentences in split
    ]
    different = [i for i, text in enumerate(found) if text != expected[i]]
    if len(different) > (1 - SAME_TEXTS) * len(found):
        i = different[0]
        raise ExchangeError(
            f"Argos Translate makes {found[i]!r} of {plain[i]!r}, expected {expected[i]!r}; "
            f"{len(different)} of {len(found)} texts differ"
        )
    same = len(found) - len(different)
    return f"{summary}; by Argos Translate, installed there: {same} of {len(found)} texts are equal"


def _translate_with_argos(folder: Path, texts: Sequence[str]) -> tuple[list[list[str]], list[str]]:
    """Return the sentences of each text, and its greedy translation, by Argos Translate.

    The package is installed into a temporary folder; nothing of the user's is read or changed.

    Raises:
        ExchangeError: Argos Translate cannot use the package.
    """
    metadata = json.loads((folder / METADATA).read_text("utf-8"))
    with tempfile.TemporaryDirectory(prefix="nmt-argos-") as name:
        path = Path(name) / f"package{SUFFIX}"
        _pack(folder, path)
        folders = ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
        settings = {variable: str(Path(name) / variable) for variable in folders}
        settings["ARGOS_PACKAGES_DIR"] = str(Path(name) / "packages")
        settings |= {"ARGOS_DEVICE_TYPE": "cpu", "ARGOS_CHUNK_TYPE": "DEFAULT"}
        settings |= {"ARGOS_BEAM_SIZE": "1", "ARGOS_COMPUTE_TYPE": "default"}
        languages = metadata["from_code"], metadata["to_code"]
        process = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            input=json.dumps([str(path), *languages, list(texts)]),
            env=os.environ | settings,
            capture_output=True,
            text=True,
            check=False,
        )
    if process.returncode:
        reason = process.stderr.strip().rpartition("\n")[2] or "it crashed"
        raise ExchangeError(f"Argos Translate cannot use the package: {reason}")
    split, found = json.loads(process.stdout.strip().rpartition("\n")[2])
    return split, found
