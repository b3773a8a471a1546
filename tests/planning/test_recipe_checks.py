"""Everything that would stop a training is reported before it starts."""

from pathlib import Path

import numpy as np
import pytest

from nmt.data.prepared import prepare
from nmt.planning import recipe_checks as module
from nmt.planning.machine_checks import Check
from nmt.planning.recipe_checks import check_recipe
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config
from nmt.training.train import train
from tests.training.runs import Recipe, quiet


def checks_of(config: Config) -> dict[str, Check]:
    return {check.name: check for check in check_recipe(config, Path("runs"))}


def test_a_valid_recipe_is_ok_before_and_after_preparation(recipe: Recipe, tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    for vocabulary in ("60 bpe entries, to be learnt", "60 entries, ids up to 59 of 60 pairs"):
        checks = checks_of(recipe())
        assert all(check.status == "ok" for check in checks.values())
        assert checks["train"].found == "60 pairs, aligned, in train.en and train.de"
        assert checks["tokenizer"].found == vocabulary
        assert (set(tmp_path.rglob("*")) == before) is ("learnt" in vocabulary)
        prepare(recipe(), lambda message: None)


@pytest.mark.parametrize("name", ["base", "demo", "multi30k"])
@pytest.mark.usefixtures("empty_folder")
def test_bundled_recipes_are_ok_before_their_download(name: str) -> None:
    checks = checks_of(load_config(f"{name}.yaml"))
    assert all(check.status == "ok" for check in checks.values())
    assert "is not here yet; `nmt train` gets it" in checks["data"].found


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_wrong_and_missing_files_are_failures(recipe: Recipe, tmp_path: Path, split: str) -> None:
    def failure() -> str:
        check = checks_of(recipe())[split]
        return check.found if check.status == "failure" else "no failure"

    file = tmp_path / f"{split}.de"
    lines = file.read_bytes().count(b"\n")
    file.write_bytes(file.read_bytes() + b"one more\n")
    assert "expected as many" in failure()
    file.unlink()
    assert f"{split}.de: no such file" in failure()
    if split != "train":
        file.write_bytes(b"\xff\n" * lines)
        assert f"{split}.de" in failure()


def test_ids_outside_of_the_vocabulary_are_a_failure(recipe: Recipe) -> None:
    config = recipe()
    folder = prepare(config, lambda message: None).directory
    ids = np.load(folder / "target.ids.npy")
    ids[3] = 60
    np.save(folder / "target.ids.npy", ids)
    check = checks_of(config)["tokenizer"]
    assert check.status == "failure" and "ids up to 60, outside" in check.found
    assert check.remedy == f"delete {folder} and run `nmt prepare`"


@pytest.mark.parametrize(
    ("settings", "start", "words"),
    [
        ("training.device=cuda", "failure recipe", "'cuda' was asked for"),
        ("training.initialize_from=nowhere", "failure recipe", "nowhere: not a run directory"),
        ("training.warmup_steps=40", "warning recipe", "the learning rate only rises"),
        ("training.checkpoint_every=41", "warning recipe", "a crash loses everything"),
        ("training.max_steps=50", "ok recipe", "50 steps of 200 tokens"),
        ("data.test=null", "warning test", "without a score; name one as data.test"),
        (
            'data.test=[{"file":no.tsv},{"file":none.tsv}]',
            "failure test2",
            "none.tsv: no such file",
        ),
        ("data.corpus=multi30 data.train=[]", "failure data", "did you mean 'multi30k'?"),
        ("tokenizer.model=none.model", "failure tokenizer", "none.model: no such file"),
    ],
)
def test_settings_are_checked(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch, settings: str, start: str, words: str
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    status, name = start.split()
    check = checks_of(recipe(*settings.split()))[name]
    assert check.status == status and words in str(check)


def test_a_recipe_is_checked_with_the_model_and_the_tokenizer_of_its_parent(
    recipe: Recipe, tmp_path: Path
) -> None:
    train(recipe("training.max_steps=1"), tmp_path / "parent", quiet)
    own = recipe("training.initialize_from=parent").model_dump(exclude={"model", "tokenizer"})
    checks = checks_of(Config.model_validate(own))
    vocabulary = tmp_path / "parent" / "tokenizer" / "tokenizer.model"
    assert checks["tokenizer"].found == f"60 entries of {vocabulary}"
    assert checks["disk fit"] == checks_of(recipe())["disk fit"]


@pytest.mark.parametrize(
    ("bytes_free", "status"),
    [(10**4, "failure"), (10**9, "warning"), (10**12, "ok"), (None, "ok")],
)
def test_the_need_of_training_is_compared_with_free_memory_and_disk(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch, bytes_free: int | None, status: str
) -> None:
    monkeypatch.setattr(module, "free_memory", lambda device: bytes_free)
    monkeypatch.setattr(module, "free_space", lambda folder: bytes_free or 10**12)
    checks = checks_of(recipe())
    assert checks["memory fit"].status == status
    assert checks["disk fit"].status == ("failure" if bytes_free == 10**4 else "ok")
