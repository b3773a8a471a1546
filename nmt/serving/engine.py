"""Loads models and translates batches with them, in whatever thread or process computes."""

import gc
import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.errors import CheckpointError
from nmt.files import read_json_or_empty
from nmt.machine.memory import return_freed_memory
from nmt.run.checkpoint_files import MANIFEST, WEIGHTS
from nmt.run.directory import find_run, weights_folder
from nmt.serving.searched_memory import SearchedMemory
from nmt.serving.settings import ServerSettings
from nmt.translation.line import Line, Translation
from nmt.translation.load import load_translator
from nmt.translation.memory_matches import MemoryUse
from nmt.translation.pipeline import Pipeline
from nmt.translation.request import Adapt, TranslationRequest
from nmt.translation.translator import Translator

if TYPE_CHECKING:
    from nmt.training.adaptation import Adaptation


@dataclass(frozen=True)
class ModelVersion:
    """The weights and settings of a run at one moment."""

    folder: str
    """the folder of the weights"""
    digest: str
    """a hash of the weights, the configuration, the tokenizer and the time of the shortlist"""
    weight_bytes: int
    """size of the file of weights"""
    weights: str = ""
    """the first 16 digits of the SHA-256 of the file of weights"""

    @classmethod
    def current(cls, run: str, checkpoint: str) -> "ModelVersion":
        """Return what a run directory, or a checkpoint, holds now.

        `checkpoint` is best, last, averaged, moving-average or step-N.

        Raises:
            CheckpointError: the weights are missing or incomplete.
        """
        folder = weights_folder(Path(run), checkpoint)
        directory = find_run(Path(run))
        contents = hashlib.sha256(str(folder).encode())
        try:
            tokenizer_files = sorted(directory.tokenizer.iterdir())
            # the manifest stands for the weights: it has their SHA-256
            for path in (folder / MANIFEST, directory.config, *tokenizer_files):
                contents.update(hashlib.sha256(path.read_bytes()).digest())
            size = (folder / WEIGHTS).stat().st_size
            if directory.shortlist.exists():  # large, so it is not read
                contents.update(str(directory.shortlist.stat().st_mtime_ns).encode())
        except OSError as error:
            raise CheckpointError(f"{run}: cannot be read: {error.strerror}") from error
        entry = read_json_or_empty(folder / MANIFEST).get(WEIGHTS, {})
        return cls(
            folder=str(folder),
            digest=contents.hexdigest()[:16],
            weight_bytes=size,
            weights=str(entry.get("sha256", ""))[:16],
        )


@dataclass(frozen=True)
class SearchKind:
    """What is asked of all segments of a batch."""

    n_best: int = 1
    alignments: bool = False
    constrained: bool = False
    """whether its segments have terms, forbidden words or a beginning, which take longer"""
    no_repeat_ngram: int | None = None
    """no sequence of so many tokens may come twice; None: as the run is configured"""
    memories: tuple[str, ...] = ()
    """names of the translation memories to search"""
    adapt: bool = False
    """whether the model learns from the nearest pairs in them before it translates a segment"""


class Engine:
    """The models of one process, by their digests; several threads may use it."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._translators: dict[str, Translator] = {}
        self._pipelines: dict[tuple[str, SearchKind], Pipeline] = {}
        self._adaptations: dict[str, Adaptation] = {}
        self._memories: dict[str, SearchedMemory] = {}
        self._loading = threading.Lock()

    def load(self, version: ModelVersion) -> None:
        """Load a model unless it is there.

        Raises:
            NmtError: the weights are damaged or gone, or a setting does not fit them.
        """
        with self._loading:
            if version.digest in self._translators:
                return
            settings = self._settings
            translator = load_translator(
                [version.folder],
                settings.checkpoint,
                settings.device,
                settings.precision,
                {"beam_size": settings.beam_size, "shortlist": settings.shortlist},
            )
            translator.searcher.load_now()
            self._translators[version.digest] = translator

    def load_pytorch(self, version: ModelVersion) -> None:
        """Load a model for PyTorch as well, before a request needs it, which takes seconds.

        Raises:
            NmtError: the weights are damaged or gone.
        """
        translator = self._translators.get(version.digest)
        if self._settings.preload_pytorch and translator:
            _ = translator.loaded.model  # the property makes the model, and keeps it
        gc.freeze()  # no later collection of garbage looks at PyTorch's many objects

    def unload(self, version: ModelVersion) -> None:
        """Drop a model; a batch that uses it ends normally."""
        self._translators.pop(version.digest, None)
        self._adaptations.pop(version.digest, None)
        for digest, kind in list(self._pipelines):
            if digest == version.digest:
                self._pipelines.pop((digest, kind), None)
        gc.unfreeze()
        gc.collect()  # PyTorch's modules refer to each other in circles
        return_freed_memory()

    def translate(
        self, version: ModelVersion, kind: SearchKind, lines: Sequence[Line]
    ) -> list[list[Translation]]:
        """Return the translations of each line, best first.

        Raises:
            NmtError: the memory does not suffice, or no translation meets the constraints.
        """
        pipeline = self._pipeline(version, kind)
        # it would warn of sentences that are too long, which the server has divided before
        return list(pipeline.translate(lines, len(lines), warn=lambda _: None))

    def _pipeline(self, version: ModelVersion, kind: SearchKind) -> Pipeline:
        """Return the pipeline for a kind of search, which is built when it is first used."""
        key = version.digest, kind
        pipeline = self._pipelines.get(key)
        if pipeline is None:
            self.load(version)
            translator = self._translators[version.digest]
            request = TranslationRequest(
                n_best=kind.n_best,
                alignments=kind.alignments,
                memory=self._memory_use(kind),
                adapt=self._adaptation(version.digest) if kind.adapt else None,
            )
            if kind.no_repeat_ngram is not None:
                translator = translator.with_settings(no_repeat_ngram=kind.no_repeat_ngram)
            pipeline = translator.pipeline(request)
            self._pipelines[key] = pipeline
        return pipeline

    def _memory_use(self, kind: SearchKind) -> MemoryUse | None:
        """Return the memories that a kind of search uses; None: it uses none."""
        for name in kind.memories:
            path = Path(self._settings.memories[name])
            self._memories.setdefault(name, SearchedMemory(path))
        memories = tuple(self._memories[name] for name in kind.memories)
        return MemoryUse(memories) if memories else None

    def _adaptation(self, digest: str) -> Adapt:
        """Return what lets a model learn from pairs; one serves all pipelines of the model."""
        from nmt.training.adaptation import Adaptation  # it imports PyTorch

        loaded = self._translators[digest].loaded
        return self._adaptations.setdefault(digest, Adaptation(loaded)).adapted
