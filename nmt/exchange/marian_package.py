"""What belongs together in Marian: the models, vocabularies and settings that decoder.yml names.

A package is a folder with a decoder.yml, or the zip of one as OPUS-MT publishes it. There the
vocabulary is YAML with the rows of the pieces, and source.spm and target.spm split the text.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config import DecodingConfig
from nmt.config_file import replace_settings
from nmt.errors import ConfigError, ExchangeError, print_warning
from nmt.exchange.marian_files import parse_yaml, read_bytes, unpack

DECODER = "decoder.yml"


@dataclass(frozen=True)
class MarianPackage:
    """The files of one model or of an ensemble."""

    folder: Path
    """where decoder.yml is"""
    settings: dict[str, Any]
    """what decoder.yml says"""
    models: list[Path]
    vocabularies: list[Path]
    """of source and target: .spm, or .yml with the rows of the pieces"""
    segmentations: list[Path]
    """the SentencePiece models of source and target"""

    def vocabulary_files(self) -> dict[str, bytes]:
        """Return {name: content} of both lists, by names that do not depend on the package."""
        files: dict[str, bytes] = {}
        for source, target in (self.vocabularies, self.segmentations):
            contents = read_bytes(source), read_bytes(target)
            names = shared_names(source.suffix) if source == target else own_names(source.suffix)
            files |= dict(zip(names, contents, strict=True))
        return files


def shared_names(suffix: str) -> list[str]:
    """Return the names of the vocabularies of source and target that are one file."""
    return [f"vocab{suffix}"] * 2


def own_names(suffix: str) -> list[str]:
    """Return the names of the vocabularies of source and target that are two files."""
    return [f"source{suffix}", f"target{suffix}"]


def read_decoding(package: MarianPackage) -> DecodingConfig:
    """Return the settings of the search in decoder.yml, as far as nmt has them.

    Raises:
        ExchangeError: they are none that Marian knows.
    """
    where = str(package.folder / DECODER)
    normalize, penalty = (package.settings.get(key, 0) for key in ("normalize", "word-penalty"))
    if normalize not in (0, 1):
        print_warning(
            f"{where}: scores are divided by the length, and not by its power normalize: "
            f"{normalize!r}, which nmt does not have"
        )
    if penalty != 0:
        print_warning(f"{where}: word-penalty: {penalty!r} is left out; nmt does not have it")
    changes = {
        "max_length_factor": package.settings.get("max-length-factor", 3),
        "max_length_offset": 0,
        "beam_size": package.settings.get("beam-size", 12),
        "length_normalization": "average" if normalize else "none",
        "allow_unknown": bool(package.settings.get("allow-unk", False)),
    }
    try:
        return replace_settings(DecodingConfig(), changes, where)
    except ConfigError as error:
        raise ExchangeError(str(error)) from error


@contextmanager
def open_package(source: Path) -> Iterator[MarianPackage]:
    """Find the files of a model, given its folder, decoder.yml, .npz or zip; a zip is unpacked.

    Raises:
        ExchangeError: a file is missing, or cannot be read.
    """
    if source.suffix != ".zip":
        yield _package(_find_decoder(source), source.absolute())
        return
    with tempfile.TemporaryDirectory(prefix="nmt-import-") as folder:
        unpack(source, Path(folder))
        yield _package(_find_decoder(Path(folder)), Path(folder), only_inside=True)


def _find_decoder(source: Path) -> Path:
    """Return the path of decoder.yml for a folder, a model in it, or itself."""
    if source.suffix == ".npz":
        beside = source.with_name(f"{source.name}.{DECODER}")
        found = [beside if beside.is_file() else source.with_name(DECODER)]
    elif source.is_dir():
        own = source / DECODER
        found = [own] if own.is_file() else sorted(source.glob(f"*{DECODER}"))
    else:
        found = [source]
    if len(found) != 1 or not found[0].is_file():
        names = ", ".join(path.name for path in found) or "none"
        raise ExchangeError(
            f"{source}: expected one {DECODER} that names models and vocabularies, found {names}; "
            "give its path"
        )
    return found[0]


def _package(decoder: Path, source: Path, only_inside: bool = False) -> MarianPackage:
    settings = parse_yaml(read_bytes(decoder), str(decoder))
    folder = decoder.absolute().parent

    def files(key: str) -> list[Path]:
        names = settings.get(key)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ExchangeError(f"{decoder}: {key} is {names!r}, expected a list of files")
        return [_resolve(name, folder, decoder, only_inside) for name in names]

    models, vocabularies = files("models"), files("vocabs")
    if source.suffix == ".npz":
        models = [source]
    if not models or len(vocabularies) != 2:
        raise ExchangeError(
            f"{decoder}: it names {len(models)} models and {len(vocabularies)} vocabularies; "
            "nmt reads models of one source and one target language, with a vocabulary of each"
        )
    segmentations = [
        path if path.suffix == ".spm" else path.with_name(f"{side}.spm")
        for side, path in zip(("source", "target"), vocabularies, strict=True)
    ]
    for vocabulary, segmentation in zip(vocabularies, segmentations, strict=True):
        if not segmentation.is_file():
            raise ExchangeError(
                f"{vocabulary}: there is no {segmentation.name} beside it to split text into its "
                "pieces; nmt needs a SentencePiece model"
            )
    return MarianPackage(folder, settings, models, vocabularies, segmentations)


def _resolve(name: str, folder: Path, decoder: Path, only_inside: bool) -> Path:
    """Return the path of a file that decoder.yml names, there or, if it was moved, beside it."""
    paths = [folder / name, folder / Path(name).name]
    inside = [path for path in paths if path.resolve().is_relative_to(folder.resolve())]
    for path in inside if only_inside else paths:
        if path.is_file():
            return path
    raise ExchangeError(f"{decoder}: the file {name} that it names is not there")
