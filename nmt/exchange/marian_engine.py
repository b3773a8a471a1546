"""Translations by Marian itself, which the package pymarian contains, to verify an export.

Marian ends its process when it finds an error, so it runs in one of its own.
"""

import importlib.util
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from nmt.data.tokens.vocabulary import split_with
from nmt.errors import ExchangeError, MissingExtraError
from nmt.exchange.engine import LONGEST, EngineTranslation
from nmt.exchange.marian_files import read_bytes
from nmt.exchange.marian_package import open_package

USAGE = """\
from pymarian import Translator

translator = Translator("--config decoder.yml --cpu-threads 1")  # of this folder
print(translator.translate(["A dog sleeps."]))
"""
"""how the exported folder is used, for the model card"""
_PROGRAM = """\
import json, sys
from pymarian import Translator
options, lines = json.load(sys.stdin)
print(json.dumps(Translator(options).translate(lines)))
"""
_OPTIONS = (
    "--beam-size 1 --n-best --word-scores --no-spm-decode --mini-batch 1 "
    "--cpu-threads 1 --max-length 1000 --max-length-crop --log-level error --quiet-translation"
)


def translate_with_marian(folder: Path, texts: Sequence[str]) -> list[EngineTranslation]:
    """Return Marian's greedy translations of texts that are not blank, by an exported folder.

    Raises:
        MissingExtraError: the package pymarian is not installed.
        ExchangeError: Marian does not accept the model.
    """
    if importlib.util.find_spec("pymarian") is None:
        raise MissingExtraError("verifying a model with Marian", "exchange")
    with open_package(folder) as package:
        names = [[p.name for p in paths] for paths in (package.models, package.vocabularies)]
        lines = list(texts)
        if package.vocabularies[0].suffix == ".yml":  # then Marian expects pieces
            pieces = split_with(read_bytes(package.segmentations[0]), texts)
            lines = [" ".join(each) for each in pieces]
        allow_unknown = " --allow-unk" if package.settings.get("allow-unk") else ""
    options = (
        f"--models {' '.join(names[0])} --vocabs {' '.join(names[1])} {_OPTIONS}{allow_unknown}"
    )
    # Marian's limit is a multiple of the tokens of the source, which has hardly fewer than words
    words = min((len(text.split()) + 1 for text in texts), default=1)
    options += f" --max-length-factor {math.ceil(2 * LONGEST / max(words, 4))}"
    process = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=json.dumps([options, lines]),
        cwd=folder,  # so that no path with a space stands in the options
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        reason = process.stderr.partition("Error: ")[2].partition("\n")[0]
        raise ExchangeError(f"{folder}: Marian cannot use the model: {reason or 'it crashed'}")
    return [_parse(line) for line in json.loads(process.stdout)]


def _parse(line: str) -> EngineTranslation:
    """Parse `0 ||| PIECES ||| WordScores= LOG_P … ||| F0= SUM ||| SUM`; the pieces lack EOS."""
    pieces, scores, *_ = line.split(" ||| ", 1)[1].rsplit(" ||| ", 3)
    log_p = [float(score) for score in scores.removeprefix("WordScores= ").split()]
    return EngineTranslation(pieces.split(" ")[:LONGEST] if pieces else [], sum(log_p))
