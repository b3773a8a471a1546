"""A recipe that is read backward: its source and its target are exchanged."""

import pytest

from nmt.errors import ConfigError
from nmt.recipe.config import TextPair
from nmt.recipe.config_file import exchange_sides, parse_config

SIDES = """
data:
  source_language: en
  target_language: ru
  train:
    - {source: a.en, target: a.ru}
    - {file: b.tsv.gz}
    - {file: c.txt.jsonl, languages: [en, ru]}
    - {file: d.jsonl, source_field: from, target_field: to}
  validation: {source: v.en, target: v.ru}
  cleaning: {target_script: Cyrillic}
tokenizer: {shared: false, model: en.model, target_model: ru.model}
model: {embeddings: separate}
"""


def test_a_recipe_read_backward_has_source_and_target_exchanged_everywhere() -> None:
    backward = exchange_sides(parse_config(SIDES))
    assert backward.data.languages == ("ru", "en")
    assert backward.data.train == [
        TextPair(source="a.ru", target="a.en"),
        TextPair(file="b.tsv.gz", source_field=2, target_field=1),
        TextPair(file="c.txt.jsonl", languages=["ru", "en"]),  # its keys are the languages
        TextPair(file="d.jsonl", source_field="to", target_field="from"),
    ]
    assert backward.data.validation == [TextPair(source="v.ru", target="v.en")]
    assert backward.data.cleaning.source_script == "Cyrillic"
    assert backward.data.cleaning.target_script is None
    assert backward.tokenizer.models == ["ru.model", "en.model"]


def test_a_recipe_without_tables_read_backward_twice_is_as_before() -> None:
    config = parse_config(SIDES.replace("    - {file: b.tsv.gz}\n", ""))
    assert exchange_sides(exchange_sides(config)) == config


@pytest.mark.parametrize(
    "data", ["{train: {source: a, target: b, tags: [de]}}", "{terms: {source: terms.tsv}}"]
)
def test_a_recipe_with_tags_or_a_glossary_is_not_read_backward(data: str) -> None:
    config = parse_config(f"data: {data}")
    with pytest.raises(ConfigError, match="cannot change places.* write a recipe of its own"):
        exchange_sides(config)


def test_what_a_recipe_leaves_out_is_left_out_when_it_is_read_backward() -> None:
    backward = exchange_sides(parse_config("data: {validation: {source: a, target: b}}"))
    assert "tokenizer" not in backward.model_fields_set  # a parent's or teacher's is taken
    assert not backward.data.model_fields_set & {"train", "test", "cleaning"}
    assert backward.data.validation == [TextPair(source="b", target="a")]
