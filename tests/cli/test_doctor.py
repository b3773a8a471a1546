"""`nmt doctor` ends with exit code 1 if any check is a failure."""

import json
from pathlib import Path

import pytest

from tests.cli.commands import invoke, lines_of, records_of


@pytest.fixture(autouse=True)
def idle_machine_in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nmt.planning.recipe_checks.free_memory", lambda device: 10**12)
    monkeypatch.setattr("nmt.planning.recipe_checks.free_space", lambda folder: 10**12)


def test_a_working_machine_and_recipe_end_with_0(tmp_path: Path) -> None:
    statuses = {line.split()[0] for line in lines_of("doctor", "--config", "demo.yaml")}
    assert "ok" in statuses and statuses <= {"ok", "warning"}
    assert not list(tmp_path.iterdir())


def test_a_machine_is_checked_without_a_recipe() -> None:
    [found] = records_of("doctor", "--json")
    assert found["ok"] is True
    assert {"python", "torch", "device", "memory"} <= {check["name"] for check in found["checks"]}
    assert set(found["checks"][0]) == {"name", "status", "found", "remedy"}


def test_json_holds_a_file_name_that_is_not_utf_8() -> None:
    found = json.loads(invoke("doctor", "--json", "--config", "\udcff.yaml").stdout_bytes)
    assert any("\udcff.yaml: no such file" in check["found"] for check in found["checks"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--config", "dem.yaml"), "no bundled recipe of that name"),
        (("--config", "demo.yaml", "--set", "model.heads=5"), "a multiple of heads"),
        (("--config", "mine.yaml"), "train.en: no such file"),
    ],
)
def test_a_recipe_that_cannot_be_trained_ends_with_1(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "mine.yaml").write_text(
        "data:\n  train: {source: train.en, target: train.de}\n"
        "  validation: {source: train.en, target: train.de}\n"
    )
    result = invoke("doctor", *arguments)
    assert result.exit_code == 1
    failures = [line for line in result.stdout.splitlines() if line.startswith("failure")]
    assert failures and words in "\n".join(failures)
