"""The chapter on the configuration: every setting with its value."""

from collections.abc import Mapping
from typing import Any

from nmt.config import Config
from nmt.report.page.configuration import configuration_chapter
from nmt.report.page.template import render


def chapter(config: Mapping[str, Any], environment: Mapping[str, Any]) -> str:
    return render(
        "configuration.html", {"configuration": configuration_chapter(config, environment)}
    )


def test_every_setting_of_the_recipe_is_shown() -> None:
    config = Config.model_validate({"data": {"corpus": "demo"}}).model_dump(mode="json")
    section = chapter(config, {"git": "abc", "libraries": {"torch": "2"}})
    html = section.replace("<wbr>", "")
    for names in (config["training"], config["model"], config["decoding"]):
        assert all(f">{name}<" in html for name in names)
    assert ">cleaning.max_length<" in html and ">seed<" in html and ">libraries.torch<" in html


def test_values_are_written_as_a_recipe_writes_them() -> None:
    html = chapter({"data": {"a": None, "b": True, "c": [], "d": ["x", 1]}}, {})
    files = [{"source": "a.en", "target": None, "weight": 2.0}]
    assert ">source: a.en, weight: 2.0<" in chapter({"data": {"train": files}}, {})
    assert ">–<" in html and ">true<" in html and ">x 1<" in html
    assert "no readable environment.json" in html


def test_resumed_parts_are_collapsed() -> None:
    environment = {"git": "abc", "resumed": [{"git": "def"}, {"git": "<i>"}]}
    html = chapter({}, environment)
    assert "Resumed 2 times" in html and "&lt;i&gt;" in html
