"""The models that are served: which run translates which pair, loaded when they are needed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.data.languages import closest_language, language_of_tag, look_up_language
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ConfigError, NmtError
from nmt.files import read_json_or_empty
from nmt.machine.memory import process_memory
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config
from nmt.run.directory import find_run
from nmt.serving.answers import RequestError, busy
from nmt.serving.compute import Compute
from nmt.serving.engine import ModelVersion
from nmt.serving.operations import Operations
from nmt.serving.settings import ServerSettings

LOADED_BYTES = 2.5
"""memory of a loaded model for each byte of its file: the weights, and their packed copies"""


@dataclass(eq=False)
class LoadedVersion:
    """What the server itself knows of a model: enough to cut texts into segments."""

    version: ModelVersion
    config: Config
    tokenizer: Tokenizer
    beam_size: int
    license: str | None
    """the licence of the model that it was imported from; None: it was not imported"""
    users: int = 0
    """requests that use it; a version that was replaced is dropped when there are none"""
    is_replaced: bool = False

    @classmethod
    def read(cls, run: str, settings: ServerSettings) -> "LoadedVersion":
        """Read what a run holds now, but not its weights.

        Raises:
            NmtError: the run is missing or damaged.
        """
        version = ModelVersion.current(run, settings.checkpoint)
        directory = find_run(Path(run))
        config = load_config(str(directory.config))
        beam_size = settings.beam_size or config.decoding.beam_size
        license_ = read_json_or_empty(directory.provenance).get("license")
        return cls(version, config, Tokenizer.load(directory.tokenizer), beam_size, license_)


@dataclass(eq=False)
class ServedModel:
    """A run, and its present version."""

    name: str
    """the name of the folder of the run, with a number if another model has the same"""
    run: str
    current: LoadedVersion
    """what new requests use"""
    is_loaded: bool = False
    last_used: float = 0.0
    """when a request last used it, in seconds of the event loop's clock"""
    waiting: int = 0
    """requests that wait until it is loaded; it is not dropped before they have used it"""
    failed: str | None = None
    """the error of the last attempt to look at the run, so that it is logged once"""


@dataclass(frozen=True)
class Direction:
    """A pair of languages, and the model that translates it."""

    model: ServedModel
    source: str
    """the code of the language, as BCP 47 writes it: zh-Hans"""
    target: str
    tag: str = ""
    """what a model of several target languages reads before each source, such as `>>fr<<`"""


class Models:
    """All models of the server."""

    def __init__(self, settings: ServerSettings, compute: Compute, operations: Operations) -> None:
        """Read the configurations and tokenizers of all runs, but no weights.

        Raises:
            NmtError: a run cannot be read, has no languages, or two runs translate the same pair.
        """
        self._settings, self._compute, self._operations = settings, compute, operations
        self.models: list[ServedModel] = []
        self._directions: dict[tuple[str, str], Direction] = {}
        self._direct_targets: dict[str, list[str]] = {}  # of each source, without a pivot
        # one at a time: a model must be counted as loaded before another one makes room for itself
        self._loading = asyncio.Lock()
        for run in settings.models:
            self._add(run)
        total = process_memory() or float("inf")
        gigabytes = settings.memory_gigabytes
        self._memory = gigabytes * 1e9 if gigabytes else total / 2

    def _add(self, run: str) -> None:
        """Serve a run, under a name that no other model has.

        Raises:
            ConfigError: another model translates the same pair, or the run cannot be read.
        """
        current = LoadedVersion.read(run, self._settings)
        names = {model.name for model in self.models}
        base = Path(run).absolute().name
        name = next(n for n in (base, *(f"{base}-{i}" for i in range(2, 99))) if n not in names)
        model = ServedModel(name, run, current)
        self.models.append(model)
        if current.license:
            self._operations.log("licence", {"model": name, "license": current.license})
        for direction in directions_of(model):
            pair = direction.source, direction.target
            if pair in self._directions:
                raise ConfigError(
                    f"{self._directions[pair].model.run} and {run} both translate "
                    f"{pair[0]} to {pair[1]}; give one of them"
                )
            self._directions[pair] = direction
            self._direct_targets.setdefault(direction.source, []).append(direction.target)
        self._name_weights()

    def _name_weights(self) -> None:
        """Say in the metrics which weights each model has."""
        now = {model.name: model.current.version.weights for model in self.models}
        self._operations.name_models(now)

    @property
    def directions(self) -> list[Direction]:
        """All pairs that a model translates by itself."""
        return list(self._directions.values())

    @property
    def sources(self) -> list[str]:
        """The codes of all source languages, in the order of the models."""
        return list(self._direct_targets)

    @property
    def languages(self) -> list[str]:
        """The codes of all languages, sources first."""
        return list(dict.fromkeys([*self.sources, *(target for _, target in self._directions)]))

    def source_code(self, code: str) -> str:
        """Return the source that stands for a code, as en does for en-US; else `code` itself."""
        return closest_language(code, self.sources) or code

    def target_code(self, code: str, source: str | None = None) -> str:
        """Return the target of `source`, or of any, that stands for a code; else `code` itself.

        It may be `source`, which is the translation of itself.
        """
        targets = [*self.targets(source), source] if source else self.languages
        return closest_language(code, targets) or code

    def targets(self, source: str) -> list[str]:
        """Return the codes of all languages that a source language is translated into."""
        direct = self._direct_targets.get(source, [])
        targets = dict.fromkeys(direct)
        if self._settings.pivot:
            for middle in direct:
                targets.update(dict.fromkeys(self._direct_targets.get(middle, [])))
        return [target for target in targets if target != source]

    def route(self, source: str, target: str) -> list[Direction]:
        """Return the directions that lead from a language to another: one, or two with a pivot.

        Raises:
            RequestError: no model translates the pair.
        """
        if (source, target) in self._directions:
            return [self._directions[source, target]]
        if self._settings.pivot:
            for middle in self._direct_targets.get(source, []):
                if second := self._directions.get((middle, target)):
                    return [self._directions[source, middle], second]
        if source not in self.sources:
            served = ", ".join(self.sources)
            raise RequestError(400, f"{source[:20]} is not supported; served are {served}")
        targets = ", ".join(self.targets(source))
        raise RequestError(
            400, f"{target[:20]} is not supported as target of {source}; it has: {targets}"
        )

    @contextlib.asynccontextmanager
    async def use(self, model: ServedModel) -> AsyncIterator[LoadedVersion]:
        """Load a model if it is not loaded; inside the block its version stays usable."""
        model.waiting += 1
        try:
            if not model.is_loaded:
                # A client that leaves must not cut off the loading: what has been loaded by then
                # would be counted by nobody, and a process would answer the next command with this
                # one's.
                await asyncio.shield(asyncio.create_task(self._load_for_request(model)))
        finally:
            model.waiting -= 1
        current = model.current
        model.last_used = asyncio.get_running_loop().time()
        current.users += 1
        try:
            yield current
        finally:
            current.users -= 1
            if current.is_replaced and not current.users:
                await self._compute.unload(current.version)

    async def _load_for_request(self, model: ServedModel) -> None:
        """Load a model for a request that waits for it.

        Raises:
            RequestError: the model cannot be loaded now; the log says why.
        """
        async with self._loading:
            if model.is_loaded:  # another request has loaded it meanwhile
                return
            try:
                await self._load(model)
            except (NmtError, OSError) as error:
                self._operations.log("loading failed", {"model": model.name, "error": str(error)})
                message = "the model of this pair cannot be loaded now; try again later"
                raise busy(message) from error

    async def _load(self, model: ServedModel) -> None:
        """Load a model, for which unused ones are dropped if the memory is short."""
        await self._make_room(model)
        await self._compute.load(model.current.version)
        model.is_loaded = True

    async def load_first(self) -> None:
        """Load the first model, and the next ones as long as the memory for models suffices.

        Raises:
            NmtError: the weights of one are damaged or gone.
            OSError: a file of one cannot be read.
        """
        used = 0.0
        for model in self.models:
            used += _memory_bytes(model)
            if model is self.models[0] or used <= self._memory:
                await self._load(model)

    async def _make_room(self, wanted: ServedModel) -> None:
        """Drop models that nobody uses, the one unused for longest first."""
        loaded = [m for m in self.models if m.is_loaded]
        used = sum(map(_memory_bytes, loaded)) + _memory_bytes(wanted)
        for model in sorted(loaded, key=lambda m: m.last_used):
            if used <= self._memory:
                return
            if not (model.current.users or model.waiting):
                model.is_loaded = False
                used -= _memory_bytes(model)
                await self._compute.unload(model.current.version)

    async def reload(self) -> None:
        """Give each model what its run holds now; a run that cannot be loaded changes nothing."""
        for model in self.models:
            await self._reload(model)

    async def _reload(self, model: ServedModel) -> None:
        """Give a model what its run holds now, or log why not, once for each reason.

        Requests that have begun end with the old version, which is unloaded after the last one.
        """
        async with self._loading:
            old = model.current
            try:
                version = await asyncio.to_thread(
                    ModelVersion.current, model.run, self._settings.checkpoint
                )
                if version == old.version:
                    model.failed = None
                    return
                new = await asyncio.to_thread(LoadedVersion.read, model.run, self._settings)
                if model.is_loaded:
                    await self._compute.load(new.version)
            except (NmtError, OSError) as error:
                if str(error) != model.failed:
                    self._operations.log(
                        "reload failed", {"model": model.name, "error": str(error)}
                    )
                model.failed = str(error)
                return
            model.current, model.failed = new, None
            self._name_weights()
            old.is_replaced = True
            if not old.users:
                await self._compute.unload(old.version)
            self._operations.log("reloaded", {"model": model.name, "weights": new.version.weights})


def directions_of(model: ServedModel) -> Sequence[Direction]:
    """Return what a model translates: its configuration's pair, or one for each language tag.

    A model that has learnt tags such as `>>fra<<` translates from its source language, and from
    each language that has a tag, into each language that has one.

    Raises:
        ConfigError: the configuration names no languages.
    """
    data, tokenizer = model.current.config.data, model.current.tokenizer
    source, target = (look_up_language(code).tag for code in data.languages)
    tags = {}  # {code of a language: its tag}, such as {"fr": ">>fra<<"}
    for tag in tokenizer.source.tags:
        language = language_of_tag(tag.strip("<>"))
        if language.codes:  # other tags, such as those of a corpus, name no language
            tags[language.tag] = tag
    if data.language_tags:  # the model reads the tags of both languages
        return [
            Direction(model, source_code, target_code, source_tag + tag)
            for source_code, source_tag in tags.items()
            for target_code, tag in tags.items()
            if source_code != target_code
        ]
    if tags:
        sources = dict.fromkeys([source, *tags])  # each once
        return [
            Direction(model, source_code, target_code, tag)
            for source_code in sources
            for target_code, tag in tags.items()
            if source_code != target_code
        ]
    if "und" in (source, target):
        raise ConfigError(
            f"{model.run}: its configuration names no languages; write data.source_language and "
            "data.target_language in its config.yaml"
        )
    return [Direction(model, source, target)]


def _memory_bytes(model: ServedModel) -> float:
    return model.current.version.weight_bytes * LOADED_BYTES
