"""The unit of the README is safe, and its command serves as another user than root."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.serving.access import add_key
from tests.serving.server_processes import PROJECT, ServerProcess, ask, upload

README = (PROJECT / "nmt/serving/README.md").read_text("utf-8")
SECTION = README.partition("### systemd")[2].partition("###")[0]
NOBODY = 65534
PYTHONS = (sys.executable, "/usr/bin/python3")


def block(kind: str) -> str:
    """The only block of a kind in the section about systemd."""
    [found] = re.findall(rf"```{kind}\n(.*?)```", SECTION, re.DOTALL)
    return str(found)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_the_unit_is_safe(tmp_path: Path) -> None:
    unit = tmp_path / "nmt.service"
    unit.write_text(block("ini"))
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=40", str(unit)]
    found = subprocess.run(command, capture_output=True, text=True)
    if "--offline" in found.stderr:
        pytest.skip("this systemd knows no --offline")
    assert found.returncode == 0, found.stdout + found.stderr


def _python_for_nobody() -> str | None:
    """A Python of this version that another user can run, with our libraries."""
    code = f"import sys, nmt, uvicorn; assert sys.version_info[:2] == {sys.version_info[:2]}"
    for python in PYTHONS:
        try:
            found = subprocess.run(
                [python, "-c", code], user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
                env=_environment(), capture_output=True,
            )  # fmt: skip
        except OSError:
            continue
        if found.returncode == 0:
            return python
    return None


def _environment() -> dict[str, str]:
    libraries = [path for path in sys.path if path.endswith("-packages")]
    return {"PYTHONPATH": ":".join([str(PROJECT), *libraries]), "PATH": os.environ["PATH"]}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can enter, which pytest's are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_command_of_the_unit_serves_as_another_user(en_de: Path, folder: Path) -> None:
    python = _python_for_nobody()
    if python is None:
        pytest.skip("no Python with the libraries of nmt that another user can run")
    [command] = re.findall("^ExecStart=(.*)$", block("ini"), re.MULTILINE)
    program, *arguments = shlex.split(command.replace("/srv/nmt/", f"{folder}/"))
    assert Path(program).name == "nmt"
    subprocess.run(
        [*(sys.executable, "-m", "nmt", "export", str(en_de), "--to", "safetensors")]
        + ["-o", str(folder / "runs/en-de")],
        check=True,
        capture_output=True,
    )
    for name in ("cache", "state"):
        (folder / name).mkdir(mode=0o700)
        os.chown(folder / name, NOBODY, NOBODY)
    keys, credential = folder / "keys.yaml", folder / "credential.yaml"
    key = add_key(keys, "anna")
    settings = block("yml").replace("/srv/nmt/", f"{folder}/").replace("/var/lib/nmt", "state")
    settings = settings.replace("/run/credentials/nmt.service/keys.yaml", str(credential))
    (folder / "serve.yaml").write_text(settings + "port: 0\n")
    shutil.copy(keys, credential)  # as systemd does it
    os.chown(credential, NOBODY, NOBODY)
    credential.chmod(0o400)
    log = folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [python, "-m", "nmt", *arguments], stderr=file, text=True, cwd=folder, umask=0o077,
            user=NOBODY, group=NOBODY, extra_groups=[],
            env=_environment() | {"XDG_CACHE_HOME": str(folder / "cache")},
        )  # fmt: skip
    try:
        server = ServerProcess(process, log)
        port = server.wait_for("listening")["port"]
        url = f"http://127.0.0.1:{port}"
        assert ask(f"{url}/readyz")[0] == 200
        body = {"q": "a dog", "source": "en", "target": "de"}
        assert ask(f"{url}/translate", body)[0] == 403
        assert ask(f"{url}/translate", {**body, "api_key": key})[0] == 200
        assert ask(upload(url, "a.txt", b"a dog", api_key=key))[0] == 200
        server.stop()
    finally:
        process.kill()
        process.wait()
    assert process.returncode in (0, 143, -15), log.read_text()
