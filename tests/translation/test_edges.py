"""List marks, headings, quotes and white space stay at the ends of a line."""

from typing import Any, cast

import pytest

from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel
from nmt.translation.line import Line, Terminology, numbered_lines
from nmt.translation.request import TranslationRequest
from nmt.translation.spans import linked_words
from nmt.translation.translator import Translator


@pytest.mark.parametrize("document", [False, True])
def test_the_ends_stay_in_the_translation(copying_run: LoadedModel, document: bool) -> None:
    texts = [
        "- a dog",
        "  1) a dog.  ",
        "# a",
        "> > ein Hund. ein Hund",
        "\u3000a\u00a0",
        "-",
        " 5 ",
    ]
    pipeline = Translator(copying_run).pipeline(TranslationRequest(document=document))
    found = [best.text for best, *_ in pipeline.translate(numbered_lines(texts))]
    assert found == texts
    batches = cast(Any, copying_run.model).batches
    assert max(length for _, length in batches) <= len("ein Hund. ein Hund") + 2


def test_links_count_the_ends(copying_run: LoadedModel) -> None:
    pipeline = Translator(copying_run).pipeline(TranslationRequest(alignments=True))
    [[found]] = pipeline.translate([Line(1, "- a dog ")])
    assert found.alignment is not None
    assert linked_words(found.alignment.links, "- a dog ", found.text) == ((1, 1), (2, 2))


def test_a_beginning_that_is_asked_for_is_the_beginning(copying_run: LoadedModel) -> None:
    settings = DecodingConfig(beam_size=2)
    lines = [Line(1, "- a dog", Terminology.of(prefix="* a"))]
    [[found]] = Translator(copying_run, settings).pipeline().translate(lines)
    assert found.text.startswith("* a")
