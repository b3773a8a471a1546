"""`nmt distill` trains a student on what its teacher writes for the training text."""

import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt.data.text.monolingual import MonolingualLine
from nmt.errors import ConfigError, DataError
from nmt.evaluation.metrics import sentence_chrf
from nmt.files import read_json_or_empty
from nmt.run.directory import RunDirectory
from nmt.translation.line import Translation
from nmt.translation.synthesis import choose_closest
from tests.cli.commands import fail, invoke, lines_of, succeed, write_lines
from tests.killed_commands import CommandForks, command_forks
from tests.training.runs import contents


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


def test_checkpoint_says_which_weights_of_the_teacher_and_not_of_the_student(
    teacher: Path, student: Path, tmp_path: Path
) -> None:
    run = tmp_path / "student"
    student.write_text(student.read_text().replace("max_steps: 3", "max_steps: 2"))
    command = ("distill", "--teacher", teacher, "--config", student, "--run-dir", run)
    folder = RunDirectory(teacher).checkpoints
    (folder / "step-00000001").rename(folder / "step-00000007")
    result = invoke(*command, "--checkpoint", "step-7")
    assert result.exit_code == 0, (result.output, result.exception)
    assert [line.split()[0] for line in result.stdout.splitlines()[-2:]] == ["teacher", "student"]


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


def test_text_that_is_not_utf8_is_an_error_or_left_out_as_the_recipe_says(
    teacher: Path, student: Path, tmp_path: Path
) -> None:
    source = tmp_path / "training.en"
    lines = (tmp_path / "text.en").read_bytes().splitlines(keepends=True)
    lines[19] = b"th\xe9\n"
    source.write_bytes(b"".join(lines))
    path = teacher / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["data"]["train"] = {"source": str(source), "target": str(tmp_path / "text.de")}
    path.write_text(yaml.safe_dump(config))
    run, text = tmp_path / "student", tmp_path / "student-text"
    command = ("distill", "--teacher", teacher, "--config", student, "--run-dir", run)
    message = fail(DataError, *command)
    assert f"{source}:20: not valid UTF-8" in message
    assert not text.exists()
    succeed(*command, "--set", "data.cleaning.invalid_utf8=true")
    origins = (text / "origin.tsv").read_text().splitlines()
    assert {19, 20, 21} & {int(line.split("\t")[1]) for line in origins} == {19, 21}


def test_a_text_with_tags_is_named(teacher: Path, student: Path) -> None:
    path = teacher / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["data"]["train"]["tags"] = ["de"]
    path.write_text(yaml.safe_dump(config))
    message = fail(ConfigError, "distill", "--teacher", teacher, "--config", student)
    assert "texts with the tags >>de<<, and a student learns no tags" in message


@pytest.mark.parametrize(
    "keys", [[{"weight": 3}, {}], [{"until_step": 2}, {"after_step": 2}], [{"until_step": 200_000}]]
)
def test_texts_with_weights_or_steps_are_an_error(
    teacher: Path, student: Path, keys: list[dict[str, int]]
) -> None:
    path = teacher / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config["data"]["train"] = [{**config["data"]["train"], **own} for own in keys]
    path.write_text(yaml.safe_dump(config))
    message = fail(ConfigError, "distill", "--teacher", teacher, "--config", student)
    assert "the texts of data.train have weights, or steps, of their own" in message
    assert message.endswith("leave these keys out of data.train of the student's recipe")


def test_more_candidates_than_the_beam_holds(teacher: Path, student: Path, tmp_path: Path) -> None:
    message = fail(
        ConfigError,
        *("distill", "--teacher", teacher, "--config", student, "--best-of", 9),
        *("--run-dir", tmp_path / "student"),
    )
    assert "beam" in message


# -- SIGKILL at any moment: text and student are those of a command that nobody kills -------------

# small parts, so that there are many moments between two of them
CONSTANTS = {
    "nmt.translation.synthesis.WINDOW_LINES": 5,
    "nmt.data.text.pair_folder.PART_PAIRS": 10,
}
SETTINGS = (
    *("tokenizer.vocabulary_size=100", "training.max_steps=12"),
    *("training.checkpoint_every=2", "training.validate_every=6"),
)


@pytest.fixture(scope="module")
def forks() -> Iterator[CommandForks]:
    with command_forks(CONSTANTS) as forks:
        yield forks


class Distillation:
    """A command that distils from so many lines, and what it has made until now."""

    def __init__(self, forks: CommandForks, teacher: Path, student: Path, lines: int) -> None:
        folder = student.parent
        self.run = RunDirectory(folder / "student")
        self.text, self.data = folder / "student-text", folder / "data"
        for language in ("en", "de"):
            text = (f"{'the small dog ' * (n % 3)}number {n} ." for n in range(lines))
            write_lines(folder / f"text.{language}", text)
        settings = [word for setting in SETTINGS for word in ("--set", setting)]
        paths = ("--config", student, "--run-dir", self.run.path, *settings)
        self.words = ("distill", "--teacher", teacher, *paths, "--workers", 1)
        self.forks = forks

    def __call__(self, **plan: Any) -> int:
        """Run the command, to its end or as the plan of `CommandForks.run` says."""
        return self.forks.run(self.words, **plan)

    def phase(self) -> str:
        """What a command that stopped now was doing."""
        if read_json_or_empty(self.run.best).get("trained_steps"):
            return "comparing"
        return "training" if (self.text / "pairs.json").is_file() else "translating"

    def take_results(self) -> list[Any]:
        """The files of the text, and what training has made; they are removed."""
        files = {path.name: path.read_bytes() for path in self.text.iterdir() if path.is_file()}
        names = {path.name for path in self.text.iterdir()}
        scores = read_json_or_empty(self.run.result)["scores"]
        results = [names, files, scores, self.run.config.read_text(), *contents(self.run)]
        for folder in (self.text, self.run.path, self.data):
            shutil.rmtree(folder)
        return results


# the first job.json, a later part; text that is complete but not tidied up; a step of training;
# and the student's translations of the test set
POINTS = [
    ("os.fsync", 2, "translating"),
    ("os.fsync", 7, "translating"),
    ("nmt.data.text.pair_folder.PairFolder._remove_parts", 1, "training"),
    ("nmt.training.step.update_weights", 6, "training"),
    ("nmt.evaluation.test_sets.translate_test_set", 2, "comparing"),
]


def test_a_command_that_is_killed_in_each_phase_goes_on(
    forks: CommandForks, teacher: Path, student: Path
) -> None:
    distill = Distillation(forks, teacher, student, lines=100)
    assert distill() == 0
    whole = distill.take_results()
    for point, count, phase in POINTS:
        assert distill(point=point, count=count) == -signal.SIGKILL
        assert distill.phase() == phase
    assert distill() == 0
    assert distill.take_results() == whole


@pytest.mark.slow
def test_50_kills_at_random_moments_change_nothing(
    forks: CommandForks, teacher: Path, student: Path
) -> None:
    """A command is killed until it is comparing teacher and student; then another one begins."""
    distill = Distillation(forks, teacher, student, lines=1000)
    results, times = [], []
    for _ in range(2):
        start = time.monotonic()
        assert distill() == 0
        times.append(time.monotonic() - start)
        results.append(distill.take_results())
    whole, draw, phases, commands = results[0], random.Random(1), Counter[str](), 1
    assert results[1] == whole
    # on until each long phase was met 5 times: which one a kill meets depends on the machine
    while phases.total() < 50 or min(phases["translating"], phases["training"]) < 5:
        assert phases.total() < 300
        exit_code = distill(seconds=draw.uniform(0, 0.3 * min(times)))
        if exit_code:
            assert exit_code == -signal.SIGKILL
            phases[distill.phase()] += 1
        if not exit_code or distill.phase() == "comparing":
            assert distill() == 0
            assert distill.take_results() == whole
            commands += 1
    assert distill() == 0
    assert distill.take_results() == whole
    print(f"{commands} commands were killed: {dict(phases)}")
