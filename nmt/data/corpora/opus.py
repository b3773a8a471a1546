"""OPUS: parallel corpora of hundreds of languages, as Moses zips (Tiedemann, 2012).

A zip holds two line-aligned files, CORPUS.xx-yy.xx and CORPUS.xx-yy.yy, the pair in alphabetical
order. No hashes are published, so those of the first download are remembered.
"""

import json
import re
from pathlib import Path
from urllib.parse import urlencode

from nmt.data.corpora.download import AbsentError, Origin, RemoteText, fetch, obtain
from nmt.data.corpora.splits import complete_splits
from nmt.errors import DataError

API = "https://opus.nlpl.eu/opusapi/"
STORAGE = "https://object.pouta.csc.fi"

_VERSION = re.compile(r"\w[\w.-]*")


def write_moses(
    corpus: str, version: str | None, languages: tuple[str, str], folder: Path, origin: Origin
) -> None:
    """Write {train,validation,test}.{language} in `folder`, the last two cut from the one text.

    Without a version it is the newest at the first download.

    Raises:
        DataError: OPUS has no such text, or it is not the one that was downloaded first.
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


def _newest(corpus: str, languages: tuple[str, str], origin: Origin) -> str:
    """The version that was taken first, else the one that OPUS calls the latest."""
    address = f"opus:{corpus}"
    known = origin.record.recall(address).get("version") if origin.record else None
    if known is not None or origin.folder is not None:
        return str(known or "latest")
    query = {
        "corpus": corpus,
        "source": languages[0],
        "target": languages[1],
        "preprocessing": "moses",
        "version": "latest",
    }
    answer = origin.downloads / "opus.json"
    try:
        fetch(f"{API}?{urlencode(query)}", answer)
    except DataError as error:
        raise DataError(f"{error}, or name the version yourself: opus:{corpus}:VERSION") from error
    version = _version(answer, corpus, languages)
    origin.log(f"the newest version of {corpus} is {version}")
    if origin.record is not None:
        origin.record.remember(address, {"version": version})
    return version


def _version(answer: Path, corpus: str, languages: tuple[str, str]) -> str:
    """The version in an answer of the API, which is removed."""
    try:
        entries = json.loads(answer.read_bytes())["corpora"]
        versions = [str(entry["version"]) for entry in entries]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{API}: not the answer expected ({' '.join(str(error).split())}); name the version "
            f"yourself, opus:{corpus}:VERSION, or fetch the zip by hand and use --from"
        ) from error
    finally:
        answer.unlink()
    if not versions:
        raise DataError(
            f"OPUS has no corpus {corpus} of {languages[0]} and {languages[1]}; names are written "
            "as at https://opus.nlpl.eu, capitals included"
        )
    if not _VERSION.fullmatch(versions[0]):
        raise DataError(f"{API}: names a version '{versions[0]}', which cannot be one")
    return versions[0]
