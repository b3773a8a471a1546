"""Which run translates what; models come, change and go while requests are answered."""

import asyncio
import logging
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import ConfigError, DataError
from nmt.serving.answers import RequestError
from nmt.serving.compute import ThreadCompute
from nmt.serving.engine import ModelVersion
from nmt.serving.models import Models, ServedModel
from nmt.serving.operations import Operations
from nmt.serving.settings import ServerSettings, load_settings
from tests.serving.served_runs import write_run, write_weights


class CountedCompute(ThreadCompute):
    """Knows which models are loaded; `error` is raised when one is to be loaded."""

    def __init__(self, settings: ServerSettings) -> None:
        super().__init__(settings)
        self.begun = 0  # commands to load
        self.loaded: list[str] = []
        self.error: Exception | None = None

    async def load(self, version: ModelVersion) -> None:
        if self.error:
            raise self.error
        self.begun += 1
        await asyncio.sleep(0.01)
        self.loaded.append(version.digest)

    async def unload(self, version: ModelVersion) -> None:
        self.loaded.remove(version.digest)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    pairs = [("de", "en"), ("en", "fr"), ("en", "de"), ("fra", "en")]
    return {f"{s}-{t}": write_run(folder / f"{s}-{t}", s, t) for s, t in pairs}


@pytest.fixture
def copied(runs: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs["en-de"], tmp_path / "copied"))


def served(*runs: Path, **settings: Any) -> tuple[Models, CountedCompute]:
    known = load_settings(None, {"models": list(map(str, runs)), **settings})
    compute = CountedCompute(known)
    return Models(known, compute, Operations()), compute


def test_pairs_come_from_the_configurations(runs: dict[str, Path]) -> None:
    models, _ = served(runs["de-en"], runs["en-fr"], runs["fra-en"])
    assert models.sources == ["de", "en", "fr"]
    assert models.targets("de") == ["en"]
    assert [d.model.name for d in models.route("fr", "en")] == ["fra-en"]
    with pytest.raises(RequestError, match="fr is not supported as target of de; it has: en"):
        models.route("de", "fr")


def test_each_side_of_a_pair_finds_the_variant_that_is_served(tmp_path: Path) -> None:
    pairs = [("en", "pt_BR"), ("en", "zh_Hans"), ("zh_Hant", "en"), ("no", "sr_Latn")]
    models, _ = served(*(write_run(tmp_path / f"{s}-{t}", s, t) for s, t in pairs))
    assert models.languages == ["en", "zh-Hant", "no", "pt-BR", "zh-Hans", "sr-Latn"]
    sources = {"en-US": "en", "eng_Latn": "en", "zh": "zh-Hant", "zh-TW": "zh-Hant", "nob": "no"}
    assert {code: models.source_code(code) for code in sources} == sources
    of_english = {
        "pt-PT": "pt-BR",
        "pt": "pt-BR",
        "ZH_HANS": "zh-Hans",
        "cmn": "zh-Hans",
        "en": "en",
    }
    assert {code: models.target_code(code, "en") for code in of_english} == of_english
    assert models.target_code("sr", "no") == "sr-Latn"
    unknown = ["auto", "sr-Cyrl", "fr", "zh-Hans-x"]
    assert [models.target_code(code, "no") for code in unknown] == unknown


def test_a_pivot_leads_through_a_third_language(runs: dict[str, Path]) -> None:
    models, _ = served(runs["de-en"], runs["en-fr"], pivot=True)
    assert models.targets("de") == ["en", "fr"]
    assert [d.model.name for d in models.route("de", "fr")] == ["de-en", "en-fr"]
    assert [d.model.name for d in models.route("de", "en")] == ["de-en"]


def test_one_pair_of_two_runs_is_an_error(runs: dict[str, Path]) -> None:
    with pytest.raises(ConfigError, match="both translate en to de; give one of them"):
        served(runs["en-de"], runs["en-de"])


def test_a_run_without_languages_is_an_error(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", "und", "und")
    with pytest.raises(ConfigError, match="names no languages; write data.source_language"):
        served(run)


def use(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_the_model_unused_for_longest_gives_way(runs: dict[str, Path]) -> None:
    models, compute = served(*runs.values(), memory_gigabytes=1e-9)
    first, second, third, _ = models.models
    size = first.current.version.weight_bytes * 2.5
    models, compute = served(*runs.values(), memory_gigabytes=2.1 * size / 1e9)
    first, second, third, _ = models.models

    async def test() -> None:
        await models.load_first()
        assert [m.is_loaded for m in models.models] == [True, True, False, False]
        async with models.use(first):
            await asyncio.sleep(0.001)
        async with models.use(third):
            assert [m.is_loaded for m in models.models] == [True, False, True, False]
            async with models.use(first), models.use(second):  # all are in use: none can go
                assert [m.is_loaded for m in models.models] == [True, True, True, False]
        assert len(compute.loaded) == 3

    use(test)


@pytest.mark.parametrize("room", [1.1, 2.1])
def test_models_that_are_asked_for_at_the_same_time_make_room_for_each_other(
    runs: dict[str, Path], room: float
) -> None:
    """Two that are in use at once are loaded even if the memory suffices for one."""
    models, _ = served(*runs.values())
    size = models.models[0].current.version.weight_bytes * 2.5
    models, compute = served(*runs.values(), memory_gigabytes=room * size / 1e9)
    *_, third, fourth = models.models

    async def ask(model: ServedModel) -> None:
        async with models.use(model):
            await asyncio.sleep(0.05)

    async def test() -> None:
        await models.load_first()
        await asyncio.wait_for(asyncio.gather(ask(third), ask(fourth)), 10)
        assert len(compute.loaded) == 2
        assert [m.is_loaded for m in models.models] == [False, False, True, True]

    use(test)


def test_new_weights_are_taken_and_the_old_ones_serve_who_has_begun(copied: Path) -> None:
    models, compute = served(copied)
    [model] = models.models

    async def test() -> None:
        async with models.use(model) as old:
            write_weights(copied, 2)
            await models.reload()
            async with models.use(model) as new:
                assert new.version.digest != old.version.digest
            assert compute.loaded == [old.version.digest, new.version.digest]
        assert compute.loaded == [new.version.digest]
        await models.reload()
        assert model.current is new

    use(test)


def test_a_new_shortlist_is_taken_as_new_weights_are(copied: Path) -> None:
    models, compute = served(copied)
    [model] = models.models

    async def test() -> None:
        await models.load_first()
        (copied / "shortlist.npz").write_bytes(b"learnt")
        await models.reload()
        assert (compute.begun, compute.loaded) == (2, [model.current.version.digest])

    use(test)


@pytest.mark.parametrize("damage", ["vanished", "no weights", "bad config", "bad weights"])
def test_a_run_that_cannot_be_loaded_changes_nothing_and_is_logged_once(
    copied: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nmt.serving")
    models, compute = served(copied)
    [model] = models.models
    before = model.current

    async def test() -> None:
        await models.load_first()
        if damage == "vanished":
            shutil.rmtree(copied)
        elif damage == "no weights":
            shutil.rmtree(copied / "checkpoints")
        elif damage == "bad config":
            (copied / "config.yaml").write_text("no: config")
        else:
            write_weights(copied, 2)
            compute.error = DataError("damaged")
        for _ in range(3):
            await models.reload()
        assert model.current is before
        assert compute.loaded == [before.version.digest]

    use(test)
    assert [r.message for r in caplog.records if r.message == "reload failed"] == ["reload failed"]


def test_a_client_that_leaves_does_not_cut_off_the_loading(copied: Path) -> None:
    models, compute = served(copied)
    [model] = models.models

    async def ask() -> None:
        async with models.use(model):
            pass

    async def test() -> None:
        client = asyncio.create_task(ask())
        await asyncio.sleep(0.001)
        client.cancel()
        await asyncio.wait([client])
        await ask()  # waits for what has been begun
        assert client.cancelled()
        assert (compute.begun, compute.loaded) == (1, [model.current.version.digest])

    use(test)


def test_a_model_that_cannot_be_loaded_on_demand_is_a_busy_server(copied: Path) -> None:
    """The error names no path, which that of the loader does."""
    models, compute = served(copied)
    compute.error = DataError(f"{copied}: damaged")

    async def test() -> None:
        async with models.use(models.models[0]):
            raise AssertionError("it is not usable")

    with pytest.raises(RequestError, match="cannot be loaded now") as caught:
        use(test)
    assert caught.value.status == 503
    assert str(copied) not in str(caught.value)
