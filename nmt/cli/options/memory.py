"""The options of `nmt translate` for translation memories."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.streams import log
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.run.model import LoadedModel
    from nmt.translation.memory_matches import MemoryUse
    from nmt.translation.request import Adapt, TranslationRequest


@dataclass(frozen=True)
class MemoryOptions:
    """Which translation memories are used, and how."""

    memory: Annotated[list[Path] | None, typer.Option(metavar="FILE")] = None
    """A translation memory, as `nmt memory` writes it. Its translation of an equal sentence is
    taken as it is; a model that was trained with data.memory also uses those of similar ones. May
    be given several times."""
    no_exact_matches: Annotated[bool, typer.Option("--no-exact-matches")] = False
    """Translate also what is in a memory; the model must have been trained with data.memory, or
    --adapt be given."""
    adapt: Annotated[bool, typer.Option("--adapt")] = False
    """Before each line, let the model learn from the most similar pairs of the memory: any model
    can. It forgets them afterwards."""
    adapt_document: Annotated[bool, typer.Option("--adapt-document")] = False
    """With --adapt, let sentences of a document without similar pairs learn from those of the
    sentences near them."""

    def __post_init__(self) -> None:
        if self.adapt and not self.memory:
            raise ConfigError("--adapt learns from the pairs of --memory; add --memory FILE")
        if self.adapt_document and not self.adapt:
            raise ConfigError("--adapt-document says how --adapt learns; add --adapt")
        if self.no_exact_matches and not self.memory:
            raise ConfigError(
                "--no-exact-matches says what is done with the matches of --memory; add --memory "
                "FILE, or leave it out"
            )

    def add_to(
        self, request: "TranslationRequest", loaded: "LoadedModel", to: str | None
    ) -> "TranslationRequest":
        """Return a request that also uses the memories, and learns from them with --adapt.

        `to` is the language of --to, into which a model of several translates; None: it is not
        given.

        Raises:
            ConfigError: a memory has other languages, or nothing of it would be used; several
                models translate together, and cannot learn.
            DataError: a memory cannot be read.
        """
        use, adapt = self._use(loaded, to), self._adaptation(loaded)
        return replace(request, memory=use, adapt=adapt, adapt_document=self.adapt_document)

    def _use(self, loaded: "LoadedModel", to: str | None) -> "MemoryUse | None":
        """Open the memories for a model."""
        if not self.memory:
            return None
        from nmt.memory.store import Memory
        from nmt.translation.memory_matches import MemoryUse, can_repair, check_direction

        memories = tuple(map(Memory.open, self.memory))
        for path, memory in zip(self.memory, memories, strict=True):
            check_direction(memory.languages, loaded, to, str(path))
        if not (self.adapt or can_repair(loaded)):
            untrained = "the model was not trained with data.memory, so of --memory it "
            if self.no_exact_matches:
                raise ConfigError(
                    f"{untrained}can use exact matches alone; add --adapt, or leave out "
                    "--no-exact-matches"
                )
            log(f"{untrained}uses exact matches alone; --adapt lets it learn from similar ones")
        return MemoryUse(memories, exact=not self.no_exact_matches)

    def _adaptation(self, loaded: "LoadedModel") -> "Adapt | None":
        """Return what lets a model learn from similar pairs; None: it does not."""
        if not self.adapt:
            return None
        from nmt.training.adaptation import Adaptation

        return Adaptation(loaded).adapted
