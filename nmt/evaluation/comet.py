"""COMET, computed by the program `comet-score`, which has an environment of its own.

Rei et al., 2022: COMET-22: Unbabel-IST 2022 Submission for the Metrics Shared Task. The package
`unbabel-comet` requires older versions of our libraries, so it is run as a program and never
imported. It downloads its model when it first needs it.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nmt.errors import DataError, NmtError
from nmt.evaluation.metrics import Score
from nmt.evaluation.test_sets import EvaluationSet

PROGRAM = "comet-score"
# the line with the score of the whole text, such as "system score: 0.8421"
_SYSTEM_SCORE = re.compile(r"^.*\bscore:\s*(-?\d+(?:\.\d+)?)\s*$", re.MULTILINE)


def find_comet() -> str:
    """Return the path of the program `comet-score`.

    Raises:
        NmtError: It is not installed.
    """
    if path := shutil.which(PROGRAM):
        return path
    raise NmtError(
        f"COMET needs the program {PROGRAM}, and there is none on PATH; install it in another "
        "environment, with `pipx install unbabel-comet` or `uv tool install unbabel-comet`: it "
        "needs older versions of the libraries of this one"
    )


def comet(
    translations: Sequence[str], test_set: EvaluationSet, model: str | None = None, gpus: int = 0
) -> Score:
    """Return the COMET score of the whole text, times 100 to be in the range of other metrics.

    `model` names a COMET model (None: the program's default). `gpus` is the number of GPUs to use;
    0 computes on the CPU. What the program logs goes to stderr.

    Raises:
        NmtError: The program is not installed, or fails.
        DataError: The test set has no sources.
    """
    program = find_comet()
    if test_set.sources is None:
        raise DataError(f"COMET compares with the sources, and {test_set} has none; give them")
    texts = (
        ("-s", "sources", test_set.sources),
        ("-t", "translations", translations),
        ("-r", "references", test_set.references),
    )
    command = [program]
    with tempfile.TemporaryDirectory(prefix="nmt-comet-") as folder:
        for option, name, lines in texts:
            file = Path(folder, name)
            # the program splits lines at carriage returns too
            file.write_text("".join(line.replace("\r", " ") + "\n" for line in lines), "utf-8")
            command += [option, str(file)]
        command += ["--gpus", str(gpus), "--quiet"]
        command += ["--model", model] if model else []
        try:
            result = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        except OSError as error:
            raise NmtError(
                f"{program} cannot be run: {error.strerror}; install it again"
            ) from error
    if result.returncode:
        raise NmtError(
            f"{PROGRAM} failed with exit code {result.returncode}; its error message is above. It "
            "downloads its model when it first needs it: check the network"
        )
    output = result.stdout.decode("utf-8", errors="replace")
    scores = _SYSTEM_SCORE.findall(output)
    if not scores:
        last_line = output.strip().split("\n")[-1]
        raise NmtError(
            f"{PROGRAM} printed no score, but: {last_line[:200]!r}; run it by hand to see why"
        )
    text_score = float(scores[-1])  # printed last; the scores of sentences match the pattern too
    return Score("COMET × 100", 100 * text_score, f"{PROGRAM}|model:{model or 'default'}")
