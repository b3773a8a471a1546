"""The page for all eyes, hands and screens: themes, keyboard, directions, telephones, axe-core."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serving.page_in_chromium import ARABIC, StandIn, hover_over, lit

sync_api: Any = pytest.importorskip("playwright.sync_api", reason="needs nmt[browser]")
expect = sync_api.expect


def expect_translation(page: Any, text: str) -> None:
    expect(page.locator("#target")).to_have_value(text)


def test_dark_mode_follows_the_system_until_it_is_switched(open_page: Callable[..., Any]) -> None:
    page = open_page(color_scheme="dark")
    background = "getComputedStyle(document.documentElement).backgroundColor"
    switch = page.get_by_role("switch", name="Dark mode")
    assert switch.get_attribute("aria-checked") == "true"
    dark = page.evaluate(background)
    switch.click()
    light = page.evaluate(background)
    assert light != dark
    page.reload()
    assert page.evaluate(background) == light
    assert switch.get_attribute("aria-checked") == "false"


def test_the_keyboard_reaches_everything_in_order(page: Any, api: StandIn) -> None:
    api.settings["frontendTimeout"] = 60_000
    page.reload()
    page.fill("#source", "a dog")
    page.keyboard.press("Control+Enter")
    expect_translation(page, "DOG A")
    page.focus("#theme")
    order = []
    for _ in range(11):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.innerText"))
    assert order == [
        *("source-language", "swap", "target-language", "source", "clear", "target", "more"),
        *("copy", "Glossary", "Files", "Keyboard"),
    ]


def test_text_of_either_direction_begins_on_its_side(page: Any) -> None:
    page.fill("#source", "The small dog.")
    page.select_option("#target-language", label="Arabic")  # which /languages does not list
    expect_translation(page, " ".join(ARABIC[:3]))
    directions = page.eval_on_selector_all(
        "textarea[id=source], #target", "all => all.map(each => getComputedStyle(each).direction)"
    )
    assert directions == ["ltr", "rtl"]
    assert page.locator("#target").get_attribute("lang") == "ar"
    page.focus("#target")
    page.keyboard.press("ArrowLeft")  # forward in Arabic
    page.wait_for_timeout(30)
    assert lit(page, "source") == ["dog."]


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_narrow_screen_shows_everything_without_scrolling_sideways(
    open_page: Callable[..., Any], width: int
) -> None:
    page = open_page(viewport={"width": width, "height": 640})
    page.fill("#source", "Donau" * 40 + " word" * 60)
    expect(page.locator("#target")).to_have_value(re.compile("DONAU"))
    for summary in page.locator("summary").all():
        summary.click()
    page.get_by_role("button", name="Alternatives").click()
    expect(page.locator("#choices button")).to_have_count(4)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for element in page.locator("button:visible, select, textarea").all():
        box = element.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        assert box["height"] >= 40


def test_the_fields_grow_with_their_texts(page: Any) -> None:
    page.fill("#source", "line\n" * 40)
    scrolled = "e => e.scrollHeight <= e.clientHeight + 1"
    expect_translation(page, "\n".join(["LINE"] * 40))
    assert page.locator("#source").evaluate(scrolled) and page.locator("#target").evaluate(scrolled)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(open_page: Callable[..., Any], scheme: str) -> None:
    modules = os.environ.get("NMT_NODE_MODULES", "node_modules")
    axe = Path(modules) / "axe-core" / "axe.min.js"
    if not axe.is_file():
        pytest.skip("needs axe-core in node_modules, or in the folder that NMT_NODE_MODULES names")
    page = open_page(color_scheme=scheme)

    def violations() -> list[str]:
        page.evaluate(axe.read_text("utf-8"))
        found = page.evaluate("axe.run()")["violations"]
        return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]

    assert violations() == []
    page.fill("#source", "One dog. Two dogs.")
    expect_translation(page, "DOG. ONE DOGS. TWO")
    for summary in page.locator("summary").all():
        summary.click()
    page.fill("#glossary", "no term")
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"a"})
    page.get_by_role("button", name="Alternatives").click()
    expect(page.locator("#choices button")).to_have_count(4)
    hover_over(page, "target", "ONE")
    assert violations() == []
    page.fill("#source", "broken")
    expect(page.get_by_role("alert")).not_to_be_empty()
    assert violations() == []
