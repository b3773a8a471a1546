"""What belongs together in Marian: the models, vocabularies and settings that decoder.yml names.

A package is a folder with a decoder.yml, or the zip of one as OPUS-MT publishes it. There the
vocabulary is YAML with the rows of the pieces, and source.spm and target.spm split the text. The
folders of Bergamot and Firefox are packages, too (`nmt.exchange.bergamot_package`).
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.errors import ExchangeError, print_warning
from nmt.exchange.bergamot_package import SETTINGS, decompressed, settings_of_firefox
from nmt.exchange.imported import read_small_file, warn_of_lack
from nmt.exchange.marian_files import parse_yaml, unpack
from nmt.recipe.config import DecodingConfig
from nmt.recipe.config_file import replace_settings

DECODER = "decoder.yml"
MODELS = (".npz", ".bin")
"""the ends of the names of models"""
SIDES = ("source", "target")


@dataclass(frozen=True)
class MarianPackage:
    """The files of one model or of an ensemble."""

    folder: Path
    """where decoder.yml is"""
    settings: dict[str, Any]
    """what decoder.yml says"""
    models: list[Path]
    """the weights as .npz or .bin; several are an ensemble"""
    vocabularies: list[Path]
    """of source and target: .spm, or .yml with the rows of the pieces"""
    segmentations: list[Path]
    """the SentencePiece models of source and target; .spm vocabularies are these themselves"""
    shortlist: Path | None = None
    """the translations that each source piece may have; None: all"""

    @property
    def files(self) -> list[Path]:
        """Weights, vocabularies, segmentations and the shortlist."""
        shortlists = [self.shortlist] if self.shortlist else []
        return [*self.models, *self.vocabularies, *self.segmentations, *shortlists]

    def vocabulary_files(self) -> dict[str, bytes]:
        """Return {name: content} of the files in `vocabularies` and `segmentations`.

        Each gets a name that does not depend on the package, such as source.spm, so that an export
        finds it again among the originals that a run keeps.
        """
        files: dict[str, bytes] = {}
        for source, target in (self.vocabularies, self.segmentations):  # two files each
            contents = read_small_file(source), read_small_file(target)
            names = vocabulary_names(source.suffix, shared=source == target)
            files |= dict(zip(names, contents, strict=True))
        return files


def vocabulary_names(suffix: str, shared: bool) -> list[str]:
    """Return the names that we give the files of source and target: one name if they share it."""
    return [f"vocab{suffix}"] * 2 if shared else [f"source{suffix}", f"target{suffix}"]


def read_decoding(package: MarianPackage) -> DecodingConfig:
    """Return the settings of the search in decoder.yml, as far as nmt has them.

    Raises:
        ExchangeError: Marian does not know one of the values.
    """
    where, settings = str(package.folder / DECODER), package.settings
    normalize, penalty = settings.get("normalize", 0), settings.get("word-penalty", 0)
    if normalize not in (0, 1):  # the exponent of the length by which a score is divided
        print_warning(
            f"{where}: normalize: {normalize!r} divides scores by a power of the length, which nmt "
            "does not have; it divides them by the length"
        )
    if penalty != 0:
        warn_of_lack(where, "word-penalty", repr(penalty))
    changes = {  # missing settings have Marian's defaults
        "max_length_factor": settings.get("max-length-factor", 3),
        "max_length_offset": 0,
        "beam_size": settings.get("beam-size", 12),
        "length_normalization": "average" if normalize else "none",
        "allow_unknown": bool(settings.get("allow-unk", False)),
    }
    return replace_settings(DecodingConfig(), changes, where, ExchangeError)


@contextmanager
def open_package(source: Path) -> Iterator[MarianPackage]:
    """Find the files of a model, given its folder, decoder.yml, .npz, .bin or zip.

    A zip is unpacked for the time of the block, and so are files that are compressed with gzip.

    Raises:
        ExchangeError: a file is missing, or cannot be read.
    """
    if source.suffix != ".zip":
        is_folder = source.is_dir()
        with decompressed(source if is_folder else source.absolute().parent) as folder:
            name = source.name.removesuffix(".gz")
            path = source if folder == source else folder if is_folder else folder / name
            # None: all that decoder.yml names
            model = path if path.suffix in MODELS else None
            yield _read_package(_find_decoder(path), model)
        return
    with tempfile.TemporaryDirectory(prefix="nmt-import-") as folder:
        unpack(source, Path(folder))
        unpacked = Path(folder)
        top = list(unpacked.iterdir())
        if len(top) == 1 and top[0].is_dir():  # a folder was packed, and not its files
            unpacked = top[0]
        try:
            yield _read_package(_find_decoder(unpacked), only_inside=True)
        except ExchangeError as error:  # nobody knows the folder, which is removed again
            raise ExchangeError(str(error).replace(folder, str(source))) from error


def _find_decoder(source: Path) -> Path:
    """Return the path of decoder.yml for a folder, a model in it, or itself.

    It is the folder itself if that is one of Firefox, without a file of settings.
    """
    if source.suffix in MODELS and source.is_file():
        own = source.with_name(f"{source.name}.{DECODER}")
        candidates = [own] if own.is_file() else _settings_in(source.parent)
    elif source.is_dir():
        candidates = _settings_in(source)
    else:
        candidates = [source]
    folder = source if source.is_dir() else source.parent
    if not candidates and settings_of_firefox(folder):
        return folder
    if len(candidates) != 1 or not candidates[0].is_file():
        names = ", ".join(path.name for path in candidates) or "none"
        raise ExchangeError(
            f"{source}: expected one {DECODER} or {SETTINGS} (Marian, Bergamot) that names models "
            "and vocabularies, files with the names of Firefox (model.enpt.intgemm.alphas.bin, "
            f"vocab.enpt.spm), or config.json (Hugging Face), found {names}; give another path"
        )
    return candidates[0]


def _settings_in(folder: Path) -> list[Path]:
    """Return the files of settings in a folder: decoder.yml alone, or all with similar names."""
    plain = folder / DECODER
    return (
        [plain]
        if plain.is_file()
        else sorted({*folder.glob(f"*{DECODER}"), *folder.glob(SETTINGS)})
    )


def _read_package(
    decoder: Path, model: Path | None = None, only_inside: bool = False
) -> MarianPackage:
    """Return what a decoder.yml names, or only `model` of its models.

    `only_inside`: files outside its folder do not count, for a zip that nobody has checked.
    """
    if decoder.is_dir():
        settings = settings_of_firefox(decoder) or {}
        decoder = decoder / "files of Firefox"  # for messages, and to find the others beside it
    else:
        settings = parse_yaml(read_small_file(decoder), str(decoder))

    def paths_under(key: str) -> list[Path]:
        names = settings.get(key)
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ExchangeError(f"{decoder}: {key} is {names!r}, expected a list of files")
        return [_resolve(name, decoder, only_inside) for name in names]

    models, vocabularies = paths_under("models"), paths_under("vocabs")
    if model is not None:
        models = [model.absolute()]
    if not models or len(vocabularies) != 2:
        raise ExchangeError(
            f"{decoder}: it names {len(models)} models and {len(vocabularies)} vocabularies; "
            "nmt reads models of one source and one target language, with a vocabulary of each"
        )
    shortlist = None
    lists = settings.get("shortlist")  # a file, and how many entries count or whether to check it
    if isinstance(lists, list) and lists and isinstance(lists[0], str):
        shortlist = _resolve(lists[0], decoder, only_inside)
    return MarianPackage(
        decoder.absolute().parent,
        settings,
        models,
        vocabularies,
        [_segmentation_of(path, side) for path, side in zip(vocabularies, SIDES, strict=True)],
        shortlist,
    )


def _segmentation_of(vocabulary: Path, side: str) -> Path:
    """Return the SentencePiece model that splits text into the pieces of a vocabulary."""
    path = vocabulary if vocabulary.suffix == ".spm" else vocabulary.with_name(f"{side}.spm")
    if not path.is_file():
        raise ExchangeError(
            f"{vocabulary}: there is no {path.name} beside it to split text into its pieces; nmt "
            "needs a SentencePiece model"
        )
    return path


def _resolve(name: str, decoder: Path, only_inside: bool) -> Path:
    """Return the path of a file that decoder.yml names, there or, if it was moved, beside it."""
    folder = decoder.absolute().parent
    paths = [folder / name, folder / Path(name).name]
    if only_inside:
        paths = [path for path in paths if path.resolve().is_relative_to(folder.resolve())]
    for path in paths:
        if path.is_file():
            return path
    raise ExchangeError(f"{decoder}: the file {name} that it names is not there")
