"""COMET through the program `comet-score`, which lives in an environment of its own.

Rei et al., 2022: COMET-22: Unbabel-IST 2022 Submission for the Metrics Shared Task. The package
`unbabel-comet` asks for older versions of libraries that this toolkit needs, so it is called and
never imported. It downloads its model by itself when it first needs it.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from nmt.errors import DataError, NmtError
from nmt.evaluation.metrics import Score

PROGRAM = "comet-score"
_SYSTEM_SCORE = re.compile(r"^.*\bscore:\s*(-?\d+(?:\.\d+)?)\s*$", re.MULTILINE)


def find_comet() -> str:
    """Where the program is.

    Raises:
        NmtError: it is not installed.
    """
    if found := shutil.which(PROGRAM):
        return found
    raise NmtError(
        f"COMET needs the program {PROGRAM}, and there is none on PATH; it cannot share this "
        "environment: install it in one of its own with `pipx install unbabel-comet` or "
        "`uv tool install unbabel-comet`, and try again"
    )


def comet(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    model: str | None = None,
    gpus: int = 0,
) -> Score:
    """The system's score as a hundredfold, so that it stands beside the others.

    `model` None takes the program's default. What it says on the way goes to stderr.

    Raises:
        NmtError: it is not installed, or fails.
        DataError: not as many sources, hypotheses and references.
    """
    program = find_comet()
    counts = len(sources), len(hypotheses), len(references)
    if len(set(counts)) != 1 or not counts[0]:
        raise DataError(
            f"COMET needs a source, a translation and a reference of each sentence; got "
            f"{counts[0]}, {counts[1]} and {counts[2]}"
        )
    with tempfile.TemporaryDirectory(prefix="nmt-comet-") as folder:
        files = [Path(folder, name) for name in ("sources", "translations", "references")]
        for file, lines in zip(files, (sources, hypotheses, references), strict=True):
            # the program splits at carriage returns as well
            text = "".join(line.replace("\r", " ") + "\n" for line in lines)
            file.write_text(text, "utf-8")
        command = [program, "-s", str(files[0]), "-t", str(files[1]), "-r", str(files[2])]
        command += ["--gpus", str(gpus), "--quiet"]
        command += ["--model", model] if model else []
        printed = _run(command)
    found = _SYSTEM_SCORE.findall(printed)
    if not found:
        last = (printed.strip().split("\n") or [""])[-1]
        raise NmtError(
            f"{PROGRAM} printed no score, but: {last[:200]!r}; run it by hand to see why"
        )
    return Score("COMET × 100", 100 * float(found[-1]), f"{PROGRAM}|model:{model or 'default'}")


def _run(command: Sequence[str]) -> str:
    """What the program prints; its log stays on stderr."""
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    except OSError as error:
        raise NmtError(f"{command[0]} cannot be run: {error.strerror}; install it again") from error
    if result.returncode:
        raise NmtError(
            f"{PROGRAM} failed with exit code {result.returncode}; its own message stands above. A "
            "model that is not at hand has to be downloaded by it: check the network"
        )
    return result.stdout.decode("utf-8", errors="replace")
