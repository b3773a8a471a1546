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

from nmt.data.tokens.tokenizer import divide_tags
from nmt.data.tokens.vocabulary import split_with
from nmt.errors import ExchangeError, MissingExtraError
from nmt.exchange.engine import MAX_TRANSLATION, EngineTranslation
from nmt.exchange.imported import read_small_file
from nmt.exchange.marian_files import read_vocabulary
from nmt.exchange.marian_package import open_package

USAGE = """\
from pymarian import Translator

translator = Translator("--config decoder.yml --cpu-threads 1")  # of this folder
print(translator.translate(["A dog sleeps."]))
"""
"""how the exported folder is used, for the model card"""
# run in a process of its own: options and lines as JSON on stdin, the n-best lists on stdout
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
        ExchangeError: Marian does not accept the model, or there is no pymarian for this Python.
    """
    if importlib.util.find_spec("pymarian") is None:
        if sys.version_info >= (3, 13):
            raise ExchangeError(
                "verifying a model with Marian needs pymarian, which is there for Python 3.12 and "
                "older only; use such a Python, or --no-verify"
            )
        raise MissingExtraError("verifying a model with Marian", "exchange")
    with open_package(folder) as package:
        models = " ".join(path.name for path in package.models)
        vocabularies = " ".join(path.name for path in package.vocabularies)
        options = f"--models {models} --vocabs {vocabularies} {_OPTIONS}"
        if package.settings.get("allow-unk"):
            options += " --allow-unk"
        lines = list(texts)
        if package.vocabularies[0].suffix == ".yml":  # then Marian expects pieces, not text
            segmentation = read_small_file(package.segmentations[0])
            rows = read_vocabulary(package.vocabularies[0])
            divided = [divide_tags(text, rows) for text in texts]
            split = split_with(segmentation, [text for _, text in divided])
            lines = [
                " ".join([*tags, *pieces]) for (tags, _), pieces in zip(divided, split, strict=True)
            ]
    # Marian cuts a translation at a multiple of the tokens of its source. The multiple is chosen
    # for the shortest text, and so large that none is cut before `MAX_TRANSLATION`.
    fewest_words = min((len(text.split()) + 1 for text in texts), default=1)  # EOS counts as one
    fewest_tokens = max(fewest_words / 2, 2)  # if each piece spells two words
    options += f" --max-length-factor {math.ceil(MAX_TRANSLATION / fewest_tokens)}"
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
    """Parse a line `NUMBER ||| PIECES ||| WordScores= LOG_P … ||| F0= SUM ||| SUM` of Marian.

    The pieces lack EOS, which has a log P. They may contain " ||| ", so the line is read from both
    ends.
    """
    _number, rest = line.split(" ||| ", 1)
    pieces, word_scores, *_sums = rest.rsplit(" ||| ", 3)
    log_p = [float(score) for score in word_scores.removeprefix("WordScores= ").split()]
    return EngineTranslation(pieces.split(" ")[:MAX_TRANSLATION] if pieces else [], sum(log_p))
