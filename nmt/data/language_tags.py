"""The tags of a model that translates between many languages, as M2M-100 and NLLB-200 do.

Each source begins with the tag of its language, and each target with that of its own, which a
search begins with. In a line of text the tags stand at its start: `>>deu_Latn<<` asks for German,
and `>>eng_Latn<<>>deu_Latn<<` says what the language of the line is, too.
"""

from collections.abc import Sequence
from functools import cached_property

from nmt.data.languages import language_among
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ConfigError
from nmt.recipe.config import DataConfig, TextPair, spell_tag


def tags_of_pair(data: DataConfig, languages: tuple[str, str]) -> tuple[str, str]:
    """Return the tags before sources and targets of these languages, "" where there are none.

    Raises:
        ConfigError: `data` has tags, and none for one of the languages.
    """
    if not data.language_tags:
        return "", ""
    source, target = (language_among(code, data.language_tags) for code in languages)
    return spell_tag(source), spell_tag(target)


def tags_of_text(data: DataConfig, text: TextPair) -> tuple[str, str]:
    """Return `tags_of_pair` of the languages of a text."""
    return tags_of_pair(data, text.languages_or(data.languages))


def both_tags(data: DataConfig, text: TextPair) -> str:
    """Return the tags of both languages of a text, which a line of it may begin with."""
    return "".join(tags_of_text(data, text))


def with_languages(data: DataConfig) -> DataConfig:
    """Return the settings of a model of many languages with a language where they say none (und).

    It is the first of the model's that the other side does not have.

    Raises:
        ConfigError: a language that they say is none of the model's.
    """
    if "und" not in data.languages or len(data.language_tags) < 2:
        return data
    named = [code for code in data.languages if code != "und"]
    used = {language_among(code, data.language_tags) for code in named}
    free = (code for code in data.language_tags if code not in used)
    source, target = (next(free) if code == "und" else code for code in data.languages)
    return data.model_copy(update={"source_language": source, "target_language": target})


class LanguageTags:
    """The ids of the tags of a model, and which of them a line without tags has."""

    def __init__(self, data: DataConfig, tokenizer: Tokenizer) -> None:
        """Find the ids; a vocabulary without a tag that `data` names has none."""
        self._data, self._tokenizer = data, tokenizer

    @cached_property
    def _ids(self) -> dict[int, int]:
        """{source id: target id} of the tag of each language."""
        sides = self._tokenizer.source.tags, self._tokenizer.target.tags
        tags = map(spell_tag, self._data.language_tags)
        return {sides[0][tag]: sides[1][tag] for tag in tags if all(tag in side for side in sides)}

    @cached_property
    def _source_id(self) -> int:
        """The source id of the tag of the source language in the configuration."""
        return self._id_of(self._data.source_language)

    @cached_property
    def _target_id(self) -> int:
        """The source id of the tag of the target language in the configuration."""
        return self._id_of(self._data.target_language)

    def _id_of(self, language: str) -> int:
        """Return the source id of the tag of a language, by its code or English name.

        Raises:
            ConfigError: the language is und, undetermined, or none of the model's.
        """
        if language == "und":  # undetermined
            raise ConfigError(
                f"the model translates between {len(self._data.language_tags)} languages; say from "
                "which (data.source_language, or `from_`) and into which (data.target_language, or "
                "`to`)"
            )
        code = language_among(language, self._data.language_tags)
        return self._tokenizer.source.tags[spell_tag(code)]

    @cached_property
    def _known(self) -> frozenset[int]:
        """The source ids of all tags, also of those that name no language."""
        return frozenset(self._tokenizer.source.tags.values())

    def divide(self, ids: Sequence[int]) -> tuple[list[int], int | None]:
        """Return the ids that the encoder reads, and the id that the translation begins with.

        Of the tags of languages at the start of `ids`, the last is that of the translation and the
        one before it that of the source; earlier ones are dropped. One that is missing is that of
        the configuration. Other tags stay behind that of the source. Of a model without such tags:
        the same ids, and None.

        Raises:
            ConfigError: the languages are neither there nor in the configuration.
        """
        if not self._data.language_tags:
            return list(ids), None
        count = next((i for i, token in enumerate(ids) if token not in self._known), len(ids))
        given = [token for token in ids[:count] if token in self._ids]
        others = [token for token in ids[:count] if token not in self._ids]
        if not given:
            given = [self._target_id]
        if len(given) == 1:
            given = [self._source_id, *given]
        return [given[-2], *others, *ids[count:]], self._ids[given[-1]]

    def of_pairs(
        self, sources: Sequence[list[int]], targets: Sequence[list[int]]
    ) -> tuple[list[list[int]], list[list[int]]]:
        """Return what the model reads and writes of pairs: each target begins with its tag, too."""
        divided = [self.divide(ids) for ids in sources]
        begins = [[] if begin is None else [begin] for _, begin in divided]
        rows = [[*begin, *ids] for begin, ids in zip(begins, targets, strict=True)]
        return [ids for ids, _ in divided], rows
