"""A translator's afternoon: the commands of the README, run as written in an empty folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "nmt" / "translation" / "README.md"


@pytest.mark.slow
def test_the_sixth_segment_follows_five_corrections(tmp_path: Path) -> None:
    """NMT_TEST_RUN names a run of demo.yaml."""
    run = os.environ.get("NMT_TEST_RUN")
    if not run:
        pytest.skip("NMT_TEST_RUN names no run")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "demo").symlink_to(Path(run).resolve())
    program = README.read_text("utf-8").split("```sh\n")[1].split("```")[0]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = ["bash", "-euo", "pipefail", "-c", program]
    subprocess.run(shell, cwd=tmp_path, env=os.environ | {"PATH": path}, check=True)
    before, after = (
        (tmp_path / name).read_text("utf-8").splitlines() for name in ("order.de.xlf", "again.xlf")
    )
    corrected = (tmp_path / "corrected.xlf").read_text("utf-8").splitlines()
    assert after[3:8] == corrected[3:8] != before[3:8]  # of units 2 to 6
    assert 'exact-match">Sie braucht keinen Reisekoffer.</target>' in before[2]
    assert 'mt-suggestion">Paul hat gestern einen Bleistift gekauft.</target>' in before[8]
    assert 'fuzzy-match">Paul hat gestern einen Buntstift gekauft.</target>' in after[8]
    assert 'match-quality="83%"' in after[8]
