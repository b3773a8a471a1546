"""Training and searching ask for no kind of device by name, and a step never waits for one."""

import subprocess
import sys
from pathlib import Path

import pytest
from torch.utils import backend_registration

SCRIPT = Path(__file__).with_name("on_pretend_device.py")


@pytest.mark.skipif(
    not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="this PyTorch cannot pretend to have another device",
)
def test_a_step_runs_on_a_device_that_nobody_knows(project: Path) -> None:
    command = [sys.executable, str(SCRIPT)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
