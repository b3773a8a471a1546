"""`scripts/versions` tries other versions of Python and PyTorch."""

import os
import subprocess
from pathlib import Path


def test_what_cannot_be_had_is_a_row_that_says_so(project: Path, tmp_path: Path) -> None:
    (tmp_path / "uv").write_text("#!/bin/sh\necho 'no such Python'; exit 1\n", "utf-8")
    (tmp_path / "uv").chmod(0o755)
    ended = subprocess.run(
        [project / "scripts" / "versions", "3.99:2.0.0", "3.11:1.0.0"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.splitlines()[-2:] == [
        "| 3.99 | 2.0.0 | cannot be installed: 3.99-2.0.0.log | - |",
        "| 3.11 | 1.0.0 | cannot be installed: 3.11-1.0.0.log | - |",
    ]
    (log,) = tmp_path.glob("*/3.99-2.0.0.log")
    assert log.read_text("utf-8") == "no such Python\n"
