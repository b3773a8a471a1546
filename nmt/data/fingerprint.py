"""The fingerprint of prepared data: a hash of the text and of all settings that shape its ids."""

import contextlib
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nmt.data.language_tags import tags_of_text
from nmt.data.text.cleaning import TrainingText
from nmt.data.text.lines import read_errors
from nmt.data.tokens.annotation import term_symbols
from nmt.files import read_json_or_empty, write_json
from nmt.recipe.config import CleaningConfig, Config, TextPair

CONTENT_VERSION = 2
"""Increase this when a change of the code gives other ids for the same inputs and settings."""

_LATER_RULES = (
    "copied",
    "numbers",
    "links",
    "language",
    "mojibake",
    "near_duplicates",
    "held_out_words",
)
"""keys of data.cleaning that are hashed only if they are not at their defaults: data that was
prepared before a rule existed keeps its fingerprint"""
# The hash of a file that changed within this time (2 s) is not cached: the file may change again
# without another time of change, since some file systems count whole seconds.
_UNSETTLED_NS = 2_000_000_000


def fingerprint(
    config: Config,
    texts: Sequence[TrainingText],
    directory: Path,
    validation: Sequence[TextPair] = (),
    *,
    remember: bool = True,
) -> str:
    """Return a hash (16 hex digits) of `texts` and all settings that change the prepared data.

    `directory`/hashes.json caches the hash of each file with what `hash_file` compares, so that an
    unchanged corpus is not read again. With `remember=False` hashes.json is not written.

    Raises:
        DataError: a file of `texts` cannot be read.
    """
    cache_file = directory / "hashes.json"
    hash_cache = read_json_or_empty(cache_file)
    inputs: dict[str, Any] = {
        "format": CONTENT_VERSION,
        "texts": [_describe_text(text.text.files, config, hash_cache) for text in texts],
        "tokenizer": {
            **config.tokenizer.model_dump(exclude={"sampling", "model", "target_model"}),
            "models": [hash_file(Path(path), hash_cache) for path in config.tokenizer.models],
        },
        "cleaning": _cleaning_settings(config),
    }
    # if any text is compared with the held-out sets, the last one is
    if held_out := texts[-1].held_out:
        inputs["held_out"] = held_out.digest
        if len(config.data.synthetic) > 1:  # how many of the last texts are compared with it
            inputs["synthetic"] = len(config.data.synthetic)
    if config.data.cleaning.numbers:  # data of an older rule, which knew ASCII digits alone, differ
        inputs["digits"] = "of all scripts"
    if symbols := term_symbols(config.data):
        inputs["terms"] = symbols
    if config.data.augmentation.total:
        inputs["augmentation"] = [config.seed, config.data.augmentation.model_dump()]
    if config.data.context:
        inputs["context"] = config.data.context.model_dump()
    if memory := config.data.memory:  # the folder has matches of the validation text, too
        held_out_texts = [_describe_text(text, config, hash_cache) for text in validation]
        settings = memory.model_dump(exclude=None if memory.marks else {"marks"})  # as in old data
        inputs["memory"] = [config.seed, settings, held_out_texts]
    if remember:
        with contextlib.suppress(OSError):  # the directory may be read-only
            directory.mkdir(parents=True, exist_ok=True)
            write_json(cache_file, hash_cache)
    serialized = json.dumps(inputs, sort_keys=True).encode()
    return hashlib.sha256(serialized).hexdigest()[:16]


def _describe_text(text: TextPair, config: Config, hash_cache: dict[str, Any]) -> dict[str, Any]:
    """Return what the prepared data of a text depend on; `hash_cache` is that of `hash_file`.

    Raises:
        DataError: a file of the text cannot be read.
    """
    # records have them as keys if they name no fields; the rule `language` expects them
    is_read = text.file or config.data.cleaning.language
    return {
        "files": [hash_file(Path(path), hash_cache) for path in text.paths],
        "fields": [text.source_field, text.target_field],
        "languages": text.languages_or(config.data.languages) if is_read else None,
        # only if there are any: older data without them keeps its fingerprint
        **({"tags": text.tags} if text.tags else {}),
        **({"language tags": tags_of_text(config.data, text)} if config.data.language_tags else {}),
        **({"document": text.document_field} if text.document_field else {}),
    }


def hash_file(path: Path, cache: dict[str, Any]) -> str:
    """Return the suffix of a file, followed by its SHA-256 in hex.

    The suffix counts because it decides how the file is decompressed. `cache` maps each path to
    [size, inode, time of modification, time of change, result], times in ns; the file is added to
    it. Programs can set the time of modification, as `cp -p` and archives do, but not that of the
    last change of the file or of what is known about it.

    Raises:
        DataError: the file cannot be read.
    """
    with read_errors(path):
        stat = path.stat()
        key = str(path.resolve())
        state = [stat.st_size, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns]
        cached = cache.get(key)
        if isinstance(cached, list) and cached[:-1] == state:
            return str(cached[-1])
        with open(path, "rb") as file:
            result = path.suffix + hashlib.file_digest(file, "sha256").hexdigest()
    if time.time_ns() - stat.st_ctime_ns > _UNSETTLED_NS:
        cache[key] = [*state, result]
    return result


def _cleaning_settings(config: Config) -> dict[str, Any]:
    """Return the settings of `data.cleaning` that are hashed (see `_LATER_RULES`)."""
    settings, defaults = config.data.cleaning.model_dump(), CleaningConfig().model_dump()
    return {
        name: value
        for name, value in settings.items()
        if name not in _LATER_RULES or value != defaults[name]
    }
