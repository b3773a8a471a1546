"""A beam that cannot work is refused with a width that does."""

import pytest

from nmt.config import DecodingConfig
from nmt.errors import ConfigError
from nmt.run_directory import LoadedModel
from nmt.search.searcher import check_beam_size, widest_beam
from nmt.translation.text_translator import TextTranslator
from nmt.translation.translator import Translator


def test_a_beam_as_wide_as_the_vocabulary_is_allowed_and_a_wider_one_refused(
    random_run: LoadedModel,
) -> None:
    size = random_run.tokenizer.target.size
    check_beam_size(random_run, DecodingConfig(beam_size=size), None)
    with pytest.raises(ConfigError, match=f"wider than the vocabulary of {size} .*at most {size}"):
        check_beam_size(random_run, DecodingConfig(beam_size=size + 1), None)


def test_the_width_that_a_refusal_names_is_allowed_and_grows_with_memory(
    random_run: LoadedModel,
) -> None:
    widths = [widest_beam(random_run, memory) for memory in (1e5, 1e6, 1e7)]
    assert widths == sorted(set(widths))
    for widest, memory in zip(widths, (1e5, 1e6, 1e7), strict=True):
        with pytest.raises(ConfigError, match=f"needs more memory.*at most {widest}$"):
            check_beam_size(random_run, DecodingConfig(beam_size=widest + 1), memory)
        check_beam_size(random_run, DecodingConfig(beam_size=widest), memory)


def test_every_way_to_translate_refuses_too_wide_a_beam(random_run: LoadedModel) -> None:
    translator = Translator(random_run, DecodingConfig(beam_size=5000))
    with pytest.raises(ConfigError, match="a beam of 5000"):
        translator.translate(["a dog"])
    with pytest.raises(ConfigError, match="a beam of 5000"):
        TextTranslator(translator).translate("a dog")
