"""`nmt distill` trains a student on what its teacher writes for the training text."""

import shutil
from pathlib import Path

import pytest
import yaml

from nmt.data.text.monolingual import MonolingualLine
from nmt.errors import ConfigError
from nmt.evaluation.metrics import sentence_chrf
from nmt.translation.line import Translation
from nmt.translation.synthesis import choose_closest
from tests.cli.commands import fail, invoke, lines_of


@pytest.fixture
def student(recipe: Path) -> Path:
    """A recipe without text of its own."""
    content = yaml.safe_load(recipe.read_text())
    content["data"] = {"directory": content["data"]["directory"]}
    recipe.write_text(yaml.safe_dump(content))
    return recipe


@pytest.fixture
def teacher(tiny_run: Path, recipe: Path, tmp_path: Path) -> Path:
    """A run whose text is that of the recipe."""
    copy = Path(shutil.copytree(tiny_run, tmp_path / "teacher"))
    path = copy / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["data"] |= yaml.safe_load(recipe.read_text())["data"]
    path.write_text(yaml.safe_dump(config))
    return copy


def test_the_student_learns_the_teachers_translations(
    teacher: Path, student: Path, tmp_path: Path
) -> None:
    run = tmp_path / "student"
    command = ("distill", "--teacher", teacher, "--config", student, "--run-dir", run)
    result = invoke(*command)
    assert result.exit_code == 0, result.output
    sources, targets = (
        (tmp_path / "student-text" / f"text.{language}").read_bytes().decode().split("\n")[:-1]
        for language in ("en", "de")
    )
    translations = lines_of("translate", "-m", teacher, text="\n".join(sources))
    assert targets == translations
    rows = [line.split() for line in result.stdout.splitlines()[-2:]]
    assert [row[0] for row in rows] == ["teacher", "student"]
    assert rows[0][-1] == "1.00"
    again = invoke(*command)  # nothing is translated or trained a second time
    assert again.exit_code == 0, again.output
    assert "pairs of the teacher" in result.stderr
    assert "pairs of the teacher" not in again.stderr


def test_of_several_translations_the_closest_to_the_reference_is_learnt() -> None:
    translations = [
        Translation(text, score=-float(i))
        for i, text in enumerate(["ein Hund", "eine kleine Katze", "eine kleine Katze"])
    ]
    line = MonolingualLine("a small cat", 0, 1, "eine kleine Katze .")
    assert choose_closest(sentence_chrf)(translations, line) is translations[1]
    assert choose_closest(lambda text, reference: 0.0)(translations, line) is translations[0]


def test_a_teacher_of_another_direction_is_named(teacher: Path, student: Path) -> None:
    settings = ("--set", "data.source_language=de", "--set", "data.target_language=en")
    message = fail(ConfigError, "distill", "--teacher", teacher, "--config", student, *settings)
    assert "translates en-de, and the recipe is for de-en" in message


def test_a_text_with_tags_is_named(teacher: Path, student: Path) -> None:
    path = teacher / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["data"]["train"]["tags"] = ["de"]
    path.write_text(yaml.safe_dump(config))
    message = fail(ConfigError, "distill", "--teacher", teacher, "--config", student)
    assert "texts with the tags >>de<<, and a student learns no tags" in message


def test_more_candidates_than_the_beam_holds(teacher: Path, student: Path, tmp_path: Path) -> None:
    message = fail(
        ConfigError,
        *("distill", "--teacher", teacher, "--config", student, "--best-of", 9),
        *("--run-dir", tmp_path / "student"),
    )
    assert "beam" in message
