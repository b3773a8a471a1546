"""A finished folder of sentence pairs: its files, its facts, and the text that a recipe learns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.errors import DataError
from nmt.files import check_format, read_json
from nmt.recipe.config import MixedText, SyntheticText, TextPair

FORMAT = 1
"""The version of the folder's format: its files and the keys of pairs.json."""

MANIFEST, JOB, PARTS, ORIGIN = "pairs.json", "job.json", "parts", "origin.tsv"


def text_name(language: str) -> str:
    """Return the name of the file of one language in the folder."""
    return f"text.{language}"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return pairs.json of a complete folder.

    Raises:
        DataError: the folder is missing, incomplete or damaged.
    """
    path = folder / MANIFEST
    try:
        manifest = read_json(path)
    except FileNotFoundError as error:
        is_begun = (folder / JOB).is_file() or (folder / PARTS).is_dir()
        problem = "is not complete: run its command again" if is_begun else "holds no pairs"
        raise DataError(
            f"{folder} {problem}; expected a folder that `nmt synthesize` or `nmt data clean` wrote"
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    check_format(manifest, FORMAT, folder, "make the pairs again")
    return manifest


def folder_text(folder: Path, languages: tuple[str, str], tags: Sequence[str] = ()) -> TextPair:
    """Return the files of the pairs in a complete folder, in the direction of `languages`.

    A side may instead be in a language that one of `tags` names: one model can learn several.

    Raises:
        DataError: the folder is incomplete, or holds no text in these languages.
    """
    manifest = read_manifest(folder)
    in_folder = manifest.get("languages") or ["?"]  # "?" for the error: the manifest names none
    sides = zip(in_folder, languages, strict=False)  # the number is checked below
    fits = all(language in (expected, *tags) for language, expected in sides)
    if len(in_folder) != 2 or not fits:
        raise DataError(
            f"{folder}: holds pairs of {'-'.join(in_folder)}, expected {'-'.join(languages)}, the "
            "languages of the recipe (data.source_language, data.target_language); or name the "
            "other language in `tags`, if the recipe has several"
        )
    source, target = (str(folder / text_name(language)) for language in in_folder)
    own_languages = None if tuple(in_folder) == languages else in_folder
    return TextPair(source=source, target=target, languages=own_languages)


def synthetic_text(text: SyntheticText, languages: tuple[str, str]) -> TextPair:
    """Return the files of an entry of data.synthetic, with its tags and steps.

    Raises:
        DataError: its folder is incomplete, or holds no text in these languages.
    """
    files = folder_text(Path(text.folder), languages, text.tags)
    tags_and_steps = text.model_dump(include=set(MixedText.model_fields))
    return files.model_copy(update=tags_and_steps)
