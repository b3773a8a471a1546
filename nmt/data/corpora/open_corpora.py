"""Corpora that no list can hold, by their address: `hf:…` on the Hugging Face Hub, `opus:…`.

    hf:OWNER/NAME[@REVISION][:CONFIGURATION]     any translation data set whose text is in files
    opus:CORPUS[:VERSION]                        any corpus of OPUS

Such a name stands wherever the name of a known corpus does.
"""

import re
from functools import partial
from pathlib import Path

from nmt.data.corpora.corpus import Corpus
from nmt.data.corpora.download import Origin
from nmt.data.corpora.hub import HubData, write_hub_text
from nmt.data.corpora.opus import write_moses
from nmt.errors import ConfigError

PATTERNS = {
    "hf:OWNER/NAME[@REVISION][:CONFIGURATION]": "any translation data set of the Hugging Face Hub "
    "whose rows are {translation: {xx: …, yy: …}} or have two columns of text; the first download "
    "fixes the revision",
    "opus:CORPUS[:VERSION]": "any corpus of OPUS, https://opus.nlpl.eu; the first download fixes "
    "the version and the sha256 of its text",
}

_WORD = r"[A-Za-z0-9_][\w.-]*"
_HUB = re.compile(
    rf"hf:(?P<repository>{_WORD}/{_WORD})(@(?P<revision>{_WORD}(/{_WORD})*))?(:(?P<config>{_WORD}))?",
    re.ASCII,
)
_OPUS = re.compile(rf"opus:(?P<corpus>{_WORD})(:(?P<version>{_WORD}))?", re.ASCII)
# a configuration that tells its languages: en-de, wmt_de-en
_PAIR = re.compile(r"(?:^|.*[-_])([a-z]{2})[-_]([a-z]{2})")


def from_address(name: str) -> Corpus | None:
    """The corpus at an address; None: the name is no address.

    Raises:
        ConfigError: an address that is none.
    """
    if name.startswith("hf:"):
        match = _match(_HUB, name, "hf:OWNER/NAME:CONFIGURATION, such as hf:wmt/wmt16:de-en")
        data = HubData(match["repository"], match["config"], match["revision"])
        pair = _PAIR.fullmatch(match["config"] or "")
        return Corpus(
            name=name,
            description="a data set of the Hugging Face Hub",
            language_pairs=((pair[1], pair[2]),) if pair and pair[1] != pair[2] else (),
            pairs="see its page",
            download="see its page",
            licence="see its page",
            url=f"https://huggingface.co/datasets/{data.repository}",
            write=partial(_write_hub, data),
        )
    if name.startswith("opus:"):
        match = _match(_OPUS, name, "opus:CORPUS or opus:CORPUS:VERSION, such as opus:Books:v1")
        return Corpus(
            name=name,
            description="a corpus of OPUS",
            language_pairs=(),
            pairs="see its page",
            download="see its page",
            licence="see its page",
            url=f"https://opus.nlpl.eu/{match['corpus']}",
            write=partial(_write_opus, match["corpus"], match["version"]),
        )
    return None


def _match(pattern: re.Pattern[str], name: str, expected: str) -> re.Match[str]:
    match = pattern.fullmatch(name)
    if match is None:
        raise ConfigError(f"'{name}' is no address of a corpus; expected {expected}")
    return match


def _write_hub(data: HubData, folder: Path, languages: tuple[str, str], origin: Origin) -> None:
    write_hub_text(data, languages, folder, origin)


def _write_opus(
    corpus: str, version: str | None, folder: Path, languages: tuple[str, str], origin: Origin
) -> None:
    write_moses(corpus, version, languages, folder, origin)
