"""The options of `nmt synthesize` for a language model behind a server."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.lines.streams import log
from nmt.cli.options.groups import changed_options
from nmt.cli.options.model import RecipeOptions, SettingsOption
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.data.text.answer_rules import AnswerRules
    from nmt.recipe.config import Config
    from nmt.translation.chat_server import ChatServer
    from nmt.translation.prompted_synthesis import ChooseExamples, Prompt

KEY_VARIABLE = "NMT_ENDPOINT_KEY"
_OWN_FIELDS = {"model", "messages", "stream", "n"}


@dataclass(frozen=True)
class LanguageModelOptions:
    """A language model that translates in the place of a model of nmt, and how it is asked."""

    endpoint: Annotated[str | None, typer.Option(metavar="URL")] = None
    """Let a language model translate: the address of a server with OpenAI's interface, up to
    /chat/completions, such as http://localhost:11434/v1. --model is the name that the server has
    for it. Text, examples and terms are sent there. The other options down to --key-variable are
    for it alone."""
    config: Annotated[str | None, typer.Option(metavar="RECIPE")] = None
    """The recipe that will learn the pairs: its languages, rules of cleaning and held-out text."""
    settings: SettingsOption = None
    examples: Annotated[int, typer.Option(metavar="N", min=0, max=100)] = 0
    """Show N translated sentences before each text: of data.train, drawn once by the recipe's seed,
    or the nearest ones of --memory."""
    memory: Annotated[list[Path] | None, typer.Option(metavar="FILE")] = None
    """A translation memory for --examples; may be repeated."""
    glossary: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """Lines `source term TAB translation`; the prompt has those that occur in a text."""
    at_once: Annotated[int, typer.Option(metavar="N", min=1, max=256)] = 4
    """How many requests are on their way at a time."""
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=1, max=3600)] = 300.0
    """How long a request may take."""
    request: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE")] = None
    """A field of each request, such as max_tokens=500; may be repeated. temperature is 0 unless
    this changes it, and temperature=null leaves it out."""
    key_variable: Annotated[str, typer.Option(metavar="NAME")] = KEY_VARIABLE
    """The environment variable that holds the server's key, if it wants one."""

    def __post_init__(self) -> None:
        if not self.endpoint and (others := changed_options(self)):
            raise ConfigError(f"{others}: for a language model; add --endpoint URL, or leave out")
        if self.endpoint and not self.config:
            raise ConfigError("--endpoint needs the languages of a recipe; add --config RECIPE")
        if self.memory and not self.examples:
            raise ConfigError("--memory is where --examples N come from; add --examples")

    def load(self) -> "Config":
        """Read the recipe; see `RecipeOptions`."""
        return RecipeOptions(self.config or "", self.settings).load_without_parent()

    def server(self, models: Sequence[str]) -> "ChatServer":
        """Return the server, with its model and key.

        Raises:
            ConfigError: an option is malformed, or the variable of the key is missing.
        """
        from nmt.translation.chat_server import ChatServer

        if len(models) != 1:
            raise ConfigError("--endpoint takes one --model, the name that the server has for it")
        key = os.environ.get(self.key_variable, "").strip()
        if not key and self.key_variable != KEY_VARIABLE:
            raise ConfigError(
                f"--key-variable {self.key_variable}: not set; export it with the key"
            )
        if not (key.isascii() and key.isprintable()):
            raise ConfigError(f"{self.key_variable} holds a character that no key has; set it anew")
        fields: dict[str, Any] = {"temperature": 0}
        for setting in self.request or ():
            name, is_set, value = setting.partition("=")
            if not is_set or not name or name in _OWN_FIELDS:
                own = ", ".join(sorted(_OWN_FIELDS))
                raise ConfigError(
                    f"--request {setting}: expected KEY=VALUE, such as max_tokens=500, and no {own}"
                )
            try:
                fields[name] = json.loads(value)
            except ValueError:
                fields[name] = value
        assert self.endpoint
        return ChatServer(self.endpoint, models[0], fields, key or None, self.timeout)

    def prompt(
        self, config: "Config", read: str, written: str, rules: "AnswerRules"
    ) -> tuple["Prompt", dict[str, Any]]:
        """Return what is asked, from the language `read` into `written`, and facts about it.

        Raises:
            NmtError: a memory is of another direction, or glossary or text cannot be read.
        """
        from nmt.data.languages import language_of_tag
        from nmt.data.text.glossary import Glossary, read_glossary
        from nmt.translation.line import Terminology
        from nmt.translation.prompted_synthesis import Prompt

        examples, source = self._choose_examples(config, read, written, rules)
        glossary = read_glossary(self.glossary) if self.glossary else Glossary()
        names = (language_of_tag(read).name, language_of_tag(written).name)
        digest = Terminology(glossary).digest
        facts = {"prompt": Prompt.facts(), "examples": source, "glossary": digest}
        return Prompt(names, read, glossary, examples), facts

    def _choose_examples(
        self, config: "Config", read: str, written: str, rules: "AnswerRules"
    ) -> tuple["ChooseExamples", dict[str, Any]]:
        """Return what chooses the examples for a text, and facts about where they come from.

        They are translations that `rules` accept.
        """
        from nmt.data.corpora.registry import obtain_splits
        from nmt.data.text.parallel_text import ParallelText
        from nmt.memory.store import Memory
        from nmt.translation.memory_matches import MemoryUse, check_languages
        from nmt.translation.prompted_synthesis import draw_examples, nearest_examples

        if not self.examples:
            return (lambda text: []), {}
        if self.memory:
            memories = tuple(map(Memory.open, self.memory))
            for memory in memories:
                check_languages(memory.languages, (read, written), str(memory.path))
            sizes = {str(memory.path): memory.count_pairs() for memory in memories}
            nearest = nearest_examples(MemoryUse(memories), self.examples)
            return nearest, {"count": self.examples, "memories": sizes}
        data = config.data.model_copy(update={"synthetic": []})
        texts = [ParallelText(text, data.languages) for text in obtain_splits(data, log).train]
        pairs = draw_examples(texts, (read, written), self.examples, config.seed, rules)
        return (lambda text: pairs), {"data.train": pairs}
