"""OPUS: parallel corpora of hundreds of languages, as Moses zips (Tiedemann, 2012).

A zip holds two line-aligned files, CORPUS.xx-yy.xx and CORPUS.xx-yy.yy, the pair in alphabetical
order. No hashes are published, so those of the first download are remembered.
"""

import json
import re
from pathlib import Path
from urllib.parse import urlencode

from nmt.data.corpora.download import BY_HAND, AbsentError, fetch
from nmt.data.corpora.origin import Origin, RemoteText, obtain
from nmt.data.corpora.splits import Languages, complete_splits
from nmt.errors import DataError

API = "https://opus.nlpl.eu/opusapi/"
STORAGE = "https://object.pouta.csc.fi"

_VERSION = re.compile(r"\w[\w.-]*")


def write_moses(
    folder: Path, languages: Languages, origin: Origin, corpus: str, version: str | None
) -> None:
    """Download a corpus to train.{language} in `folder`; split the validation and test set off it.

    `corpus` is its name at OPUS, capitals included. `version` None: the version that was the newest
    at the first download.

    Raises:
        DataError: OPUS has no such text, or the text differs from that of the first download.
    """
    first, second = sorted(languages)
    pair = f"{first}-{second}"
    version = version or _newest(corpus, (first, second), origin)
    url = f"{STORAGE}/OPUS-{corpus}/{version}/moses/{pair}.txt.zip"
    try:
        for language in languages:
            text = RemoteText(url, member=f"{corpus}.{pair}.{language}")
            obtain(text, folder / f"train.{language}", origin)
    except AbsentError as error:
        raise DataError(
            f"OPUS has no {url}; check corpus, version and languages at "
            f"https://opus.nlpl.eu, or leave the version out for the newest: opus:{corpus}"
        ) from error
    complete_splits(folder, languages, origin.log)


def _newest(corpus: str, languages: Languages, origin: Origin) -> str:
    """Return the version that was downloaded first, else the one that OPUS calls the latest."""
    address = f"opus:{corpus}"
    recorded = origin.recall(address).get("version")
    if recorded is not None:
        return str(recorded)
    if origin.folder is not None:  # local copies: the version is only a part of an unused URL
        return "latest"
    source, target = languages
    query = {"corpus": corpus, "source": source, "target": target, "preprocessing": "moses"}
    answer = origin.downloads / "opus.json"
    try:
        fetch(f"{API}?{urlencode({**query, 'version': 'latest'})}", answer)
        versions = [str(entry["version"]) for entry in json.loads(answer.read_bytes())["corpora"]]
        if not all(map(_VERSION.fullmatch, versions)):
            raise ValueError(f"versions {', '.join(versions)}")
    except DataError as error:
        raise DataError(f"{error}, or name the version yourself: opus:{corpus}:VERSION") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{API}: not the answer expected ({' '.join(str(error).split())}); name the version "
            f"yourself, opus:{corpus}:VERSION, or {BY_HAND}"
        ) from error
    finally:
        answer.unlink(missing_ok=True)
    if not versions:
        raise DataError(
            f"OPUS has no corpus {corpus} of {source} and {target}; names are written "
            "as at https://opus.nlpl.eu, capitals included"
        )
    origin.log(f"the newest version of {corpus} is {versions[0]}")
    origin.remember(address, {"version": versions[0]})
    return versions[0]
