"""scripts/wheels: what is published, and what an installed wheel needs."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from nmt.machine.levels import LEVELS
from nmt.machine.processor import processor_features


@pytest.mark.slow
def test_the_wheels_are_built_and_one_computes_in_c_without_a_compiler(
    project: Path, tmp_path: Path
) -> None:
    for tool in ("build", "wheel", "auditwheel", "check_wheel_contents"):
        pytest.importorskip(tool, reason="needs pip install '.[wheels]'")
    script = str(project / "scripts" / "wheels")
    command = [sys.executable, script, "x86_64", "--output", str(tmp_path)]
    subprocess.run(command, check=True)
    names = sorted(path.name.partition("-")[2] for path in tmp_path.iterdir())
    version = names[0].partition("-")[0]
    assert names == [
        f"{version}-py3-none-any.whl",
        f"{version}-py3-none-manylinux_2_28_x86_64.whl",
        f"{version}.tar.gz",
    ]
    pure, wheel = (zipfile.ZipFile(path) for path in sorted(tmp_path.glob("*.whl")))
    libraries = {name for name in wheel.namelist() if name.endswith(".so")}
    metadata = {f"nmt-{version}.dist-info/{name}" for name in ("WHEEL", "RECORD")}
    assert set(wheel.namelist()) - libraries == set(pure.namelist()) >= metadata
    for name in set(pure.namelist()) - metadata:
        assert wheel.read(name) == pure.read(name)
    for source in ("library", "float32", "bf16"):
        assert any(Path(name).name.startswith(f"{source}_x86_64_v3_") for name in libraries)
    if not LEVELS[0].features <= processor_features():
        return
    wheel.extractall(tmp_path / "installed")
    code = "from nmt.inference.native.library import native_library; print(native_library())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path / "installed",
        env={"PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(tmp_path / "installed" / "nmt" / "machine" / "libraries") in done.stdout
