"""The page: what it asks the server for, and what it shows."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.serving.page_in_chromium import StandIn, hover_over, lit

sync_api: Any = pytest.importorskip("playwright.sync_api", reason="needs nmt[browser]")
expect = sync_api.expect


def expect_translation(page: Any, text: str) -> None:
    expect(page.locator("#target")).to_have_value(text)


def test_a_text_is_translated_while_it_is_typed(page: Any, api: StandIn) -> None:
    page.keyboard.type("A dog", delay=20)  # the field has the focus from the start
    expect_translation(page, "DOG A")
    assert len(api.asked("/v1/translate")) < 5
    expect(page.get_by_role("status").filter(has_text="DOG A")).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    expect_translation(page, "")


def test_typing_without_a_pause_is_translated_now_and_then(page: Any, api: StandIn) -> None:
    api.settings["frontendTimeout"] = 400
    page.reload()
    expect(page.locator("#count")).to_have_text("0 / 5,000")
    page.focus("#source")
    page.keyboard.type("small " * 10, delay=50)  # far less than the pause that a text waits for
    expect_translation(page, " ".join(["SMALL"] * 10))
    *early, last = [body["text"] for body in api.asked("/v1/translate")]
    assert 1 <= len(early) < 30  # of 60 keys
    assert last == ["small " * 9 + "small"]


def test_an_answer_that_comes_late_is_not_shown(page: Any) -> None:
    page.fill("#source", "a slow text")
    page.wait_for_timeout(200)
    page.fill("#source", "fast")
    expect_translation(page, "FAST")
    page.wait_for_timeout(700)
    expect_translation(page, "FAST")


def test_only_new_sentences_are_sent_and_lines_stay_lines(page: Any, api: StandIn) -> None:
    page.fill("#source", "  One dog.  Dr. B. Fox ran.\n\nIt is no. 5 of us.\n")
    expect_translation(page, "  DOG. ONE  RAN. FOX B. DR.\n\nUS. OF 5 NO. IS IT")
    page.fill("#source", "One dog. It is no. 5 of us. New!")
    expect_translation(page, "DOG. ONE US. OF 5 NO. IS IT NEW!")
    texts = [body["text"] for body in api.asked("/v1/translate")]
    assert texts == [["One dog.", "Dr. B. Fox ran.", "It is no. 5 of us."], ["New!"]]


def test_a_long_text_appears_bit_by_bit(page: Any, api: StandIn) -> None:
    page.fill("#source", " ".join(f"Part {letter}oo." for letter in "bcdfghklmnpqrstvw"))
    expect(page.locator("#target")).to_have_value(re.compile(r"WOO\. PART$"))
    assert [len(body["text"]) for body in api.asked("/v1/translate")] == [16, 1]


def test_the_language_is_detected_and_a_fitting_target_chosen(page: Any) -> None:
    source, target = page.locator("#source-language"), page.locator("#target-language")
    page.fill("#source", "der Hund")
    expect_translation(page, "HUND DER")
    assert source.evaluate("e => e.selectedOptions[0].text") == "German (detected)"
    assert target.input_value() == "en"
    page.fill("#source", "???")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("The language was not recognised; choose it from the list.")


def test_languages_are_swapped_with_their_texts_if_there_is_a_model(page: Any) -> None:
    page.fill("#source", "a dog")
    expect_translation(page, "DOG A")
    page.keyboard.press("Control+Shift+S")
    assert page.locator("#source-language").input_value() == "de"
    assert page.locator("#target-language").input_value() == "en"
    assert page.locator("#source").input_value() == "DOG A"
    expect_translation(page, "A DOG")
    page.select_option("#source-language", "en")
    page.select_option("#target-language", "fr")
    page.get_by_role("button", name="Swap languages").click()
    expect(page.get_by_role("alert")).to_contain_text("no model for the other direction")
    page.reload()
    expect(page.locator("#source-language")).to_have_value("en")
    expect(page.locator("#target-language")).to_have_value("fr")


def test_a_text_that_is_not_translated_yet_survives_a_swap(page: Any) -> None:
    page.fill("#source", "a dog")
    expect_translation(page, "DOG A")
    page.fill("#source", "a slow text")
    page.wait_for_timeout(300)  # its request runs
    page.keyboard.press("Control+Shift+S")
    assert page.locator("#source-language").input_value() == "de"
    assert page.locator("#source").input_value() == "a slow text"


def test_a_character_is_not_cut_in_half_to_detect_the_language(page: Any, api: StandIn) -> None:
    page.fill("#source", "a" * 1999 + "😀")
    expect(page.locator("#target")).to_have_value(re.compile("^A+"))
    [body] = api.asked("/detect")
    assert body["q"].encode() and body["q"].startswith("a" * 1999)


def test_the_alternatives_of_the_sentence_at_the_caret_replace_it(page: Any, api: StandIn) -> None:
    page.fill("#source", "One. Two.")
    expect_translation(page, "ONE. TWO.")
    assert all(body["n_best"] == 1 for body in api.asked("/v1/translate"))
    page.get_by_role("button", name="Alternatives").click()
    choices = page.locator("#choices button")
    expect(choices).to_have_text(["TWO.", "TWO. 1", "TWO. 2", "TWO. 3"])  # where the caret is
    hover_over(page, "target", "ONE")
    page.mouse.down()
    page.mouse.up()
    expect(choices).to_have_text(["ONE.", "ONE. 1", "ONE. 2", "ONE. 3"])
    choices.nth(2).click()
    expect_translation(page, "ONE. 2 TWO.")
    assert choices.nth(2).get_attribute("aria-pressed") == "true"
    page.locator("#source").press_sequentially(" Three.")
    expect_translation(page, "ONE. 2 TWO. THREE.")
    expect(choices.first).to_have_text("THREE.")
    choices.first.focus()
    page.keyboard.press("Escape")
    expect(page.locator("#alternatives")).to_be_hidden()
    expect(page.get_by_role("button", name="Alternatives")).to_be_focused()


def test_the_glossary_is_sent_and_kept_for_its_language(page: Any, api: StandIn) -> None:
    page.get_by_text("Glossary").click()
    page.fill("#glossary", "dog = Köter\n\nno term\n a = b = c ")
    expect(page.locator("#glossary-note")).to_contain_text("Line 3 is left out")
    page.fill("#source", "a dog")
    expect_translation(page, "Köter b = c")
    page.select_option("#target-language", "fr")
    expect_translation(page, "DOG A")
    assert page.locator("#glossary").input_value() == ""
    page.reload()
    page.select_option("#target-language", "de")
    page.fill("#source", "dog")
    expect_translation(page, "Köter")
    assert "glossary_mode" not in api.asked("/v1/translate")[-1]
    page.get_by_text("Glossary").click()
    page.get_by_label("Exactly as written").check()
    page.fill("#source", "dog dog")
    expect_translation(page, "Köter Köter")
    assert api.asked("/v1/translate")[-1]["glossary_mode"] == "exact"


def test_aligned_words_are_highlighted_under_the_pointer(page: Any) -> None:
    page.fill("#source", "Stop.\nA 😀 small dog")  # 😀 is two units of a string in JavaScript
    expect_translation(page, "STOP.\nDOG SMALL 😀 A")
    hover_over(page, "source", "small")
    assert (lit(page, "source"), lit(page, "target")) == (["small"], ["SMALL"])
    hover_over(page, "target", "DOG")
    assert (lit(page, "source"), lit(page, "target")) == (["dog"], ["DOG"])
    page.mouse.move(5, 5)
    assert (lit(page, "source"), lit(page, "target")) == ([], [])


def test_aligned_words_are_highlighted_at_the_caret(page: Any) -> None:
    page.fill("#source", "A small dog")
    expect_translation(page, "DOG SMALL A")
    page.focus("#source")
    page.keyboard.press("Home")
    expect(page.locator("#target-mirror .on .on")).to_have_text(["A"])
    page.focus("#target")
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        page.keyboard.press(key)
        page.wait_for_timeout(30)
        seen.append((lit(page, "source"), lit(page, "target")))
    assert [target for _, target in seen] == [["DOG"], ["SMALL"], ["A"], ["SMALL"]]
    assert [source for source, _ in seen] == [["dog"], ["small"], ["A"], ["small"]]


def test_without_alignments_the_sentences_are_highlighted(page: Any, api: StandIn) -> None:
    api.alignments = False
    page.fill("#source", "One dog. Two.")
    expect_translation(page, "DOG. ONE TWO.")
    box = page.locator("#source-mirror span").last.bounding_box()
    page.mouse.move(box["x"] + 4, box["y"] + 4)
    assert page.locator(".mirror .on").all_inner_texts() == ["Two.", "TWO."]


def test_a_pair_through_a_third_language_is_translated_without_alignments(
    open_page: Callable[..., Any], api: StandIn
) -> None:
    api.pivot = ("en", "de")
    page = open_page()
    page.fill("#source", "a dog")
    expect_translation(page, "DOG A")
    expect(page.get_by_role("alert")).to_have_text("")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("ar", "الكلب الصغير  الكلب\nالكلب"),
        ("he", "הכלב רץ.  הכלב\nהכלב"),
        ("hi", "कुत्ता दौड़ता है।  कुत्ता\nकुत्ता"),
        ("th", "สุนัข วิ่ง  สุนัข\nสุนัข"),
        ("zh-Hans", "狗。 两只狗狗。\n狗。"),
        ("ja", "犬。 走る犬。\n犬。"),
    ],
)
def test_sentences_are_joined_as_their_script_is_written_and_copied(
    open_page: Callable[..., Any], target: str, expected: str
) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.select_option("#source-language", "en")
    page.select_option("#target-language", target)
    page.fill("#source", "A dog.  Two!\nThree?")
    expect_translation(page, expected)
    for side, language in (("source", "en"), ("target", target)):  # a font may depend on it
        for each in (f"#{side}", f"#{side}-mirror"):
            expect(page.locator(each)).to_have_attribute("lang", language)
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#status")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == expected


def test_sentences_without_spaces_get_one_where_the_target_has_them(page: Any) -> None:
    page.select_option("#source-language", "en")
    page.select_option("#target-language", "th")
    page.fill("#source", "狗。两只！三只？")
    expect_translation(page, "สุนัข สุนัข สุนัข")


def test_characters_are_counted_as_the_server_counts_them(page: Any, api: StandIn) -> None:
    api.settings["charLimit"] = 12
    page.reload()
    page.fill("#source", "𠮷野家 😀 สุนัข")
    expect(page.locator("#count")).to_have_text("11 / 12")
    expect_translation(page, "สุนัข 😀 𠮷野家")
    page.fill("#source", "a dog " * 3)  # not cut, but not sent either
    expect(page.get_by_role("alert")).to_contain_text("more than 12 characters. Shorten it")
    expect(page.locator("#count")).to_have_text("18 / 12")
    assert page.locator("#source").input_value() == "a dog " * 3
    assert len(api.asked("/v1/translate")) == 1
    page.fill("#source", "a dog")
    expect_translation(page, "DOG A")
    expect(page.get_by_role("alert")).to_have_text("")


def test_the_translation_is_copied(open_page: Callable[..., Any]) -> None:
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.fill("#source", "a dog")
    expect_translation(page, "DOG A")
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#status")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == "DOG A"


def test_files_are_chosen_or_dropped_and_come_back_as_links(page: Any, api: StandIn) -> None:
    page.get_by_text("Files", exact=True).click()
    text = {"name": "my.notes.txt", "mimeType": "text/plain", "buffer": b"a dog"}
    page.set_input_files("#file", text)
    with page.expect_download() as download:
        page.get_by_role("link", name="my.notes.de.txt").click()
    assert Path(download.value.path()).read_text("utf-8") == "done\n"
    page.evaluate(
        """() => {
          const dataTransfer = new DataTransfer();
          dataTransfer.items.add(new File(["two"], "two.srt"));
          document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true }));
        }"""
    )
    expect(page.get_by_role("link", name="two.de.srt")).to_be_visible()
    assert all('name="source"\r\n\r\nauto' in body for body in api.asked("/v1/documents"))


def test_a_document_shows_its_progress_and_ends_with_escape(page: Any, api: StandIn) -> None:
    api.settings["supportedFilesFormat"] = [".txt", ".docx"]
    page.reload()
    page.get_by_text("Files", exact=True).click()
    expect(page.locator("#formats")).to_have_text(".txt, .docx")
    assert page.get_attribute("#file", "accept") == ".txt,.docx"
    page.get_by_text("Glossary").click()
    page.fill("#glossary", "dog = Hund")
    file = {"name": "long.docx", "mimeType": "application/zip", "buffer": b"PK"}
    page.set_input_files("#file", file)
    bar = page.get_by_role("progressbar", name="long.docx")
    expect(bar).to_have_js_property("value", 0.5)
    expect(page.locator("#files")).to_have_text("long.docx: being translated …")
    [form] = api.asked("/v1/documents")
    assert '[{"source":"dog","target":"Hund"}]' in form
    page.keyboard.press("Escape")
    expect(page.locator("#files")).to_have_text("long.docx: stopped")
    expect(bar).to_have_count(0)
    assert api.asked("DELETE /v1/documents/made")
    page.set_input_files("#file", {**file, "name": "damaged.docx"})
    expect(page.locator("#files")).to_contain_text("damaged.docx: the file is <b>damaged</b>")


def test_a_key_is_asked_for_only_where_the_server_requires_one(page: Any, api: StandIn) -> None:
    expect(page.get_by_label("API key")).to_be_hidden()
    api.settings["keyRequired"] = True
    page.reload()
    page.get_by_label("API key").fill("secret")
    page.fill("#source", "a dog")
    expect_translation(page, "DOG A")
    assert api.keys[-1] == "Bearer secret"


def test_an_error_is_shown_as_its_sentence_and_goes(page: Any, api: StandIn) -> None:
    page.fill("#source", "broken")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text("this text is <b>broken</b>; mend it")
    page.fill("#source", "mended")
    expect_translation(page, "MENDED")
    expect(alert).to_be_empty()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"status": 502, "body": "<html>"}, "The server answered with status 502."),
        (None, "The server does not answer; is it still running?"),
    ],
)
def test_a_server_that_is_gone_is_an_error_as_well(page: Any, answer: Any, message: str) -> None:
    page.route(
        "**/v1/translate", lambda route: route.fulfill(**answer) if answer else route.abort()
    )
    page.fill("#source", "a dog")
    expect(page.get_by_role("alert")).to_have_text(message)


def test_no_text_becomes_markup(page: Any) -> None:
    hostile = "<img src=x onerror=alert(1)> <script>alert(2)</script>"
    page.get_by_text("Glossary").click()
    page.fill("#glossary", f"{hostile} = {hostile}")
    page.fill("#source", hostile)
    expect_translation(page, " ".join(hostile.upper().split()[::-1]))
    page.get_by_role("button", name="Alternatives").click()
    expect(page.locator("#choices button")).to_have_count(4)
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1


def test_a_translation_that_is_used_is_kept_in_the_memory(page: Any, api: StandIn) -> None:
    page.fill("#source", "One dog. Two dogs.")
    expect_translation(page, "DOG. ONE DOGS. TWO")
    assert "memory" not in api.asked("/v1/translate")[-1]  # there is none
    expect(page.locator("#memory-box")).to_be_hidden()
    api.remembered = {"One dog.": "Ein Hund."}
    page.reload()
    page.fill("#source", "One dog. Two dogs.")
    expect_translation(page, "Ein Hund. DOGS. TWO")
    page.get_by_role("button", name="Alternatives").click()
    page.fill("#own", "Zwei Hunde.")
    page.get_by_role("button", name="Use this translation").click()
    expect_translation(page, "Ein Hund. Zwei Hunde.")
    expect(page.locator("#of")).to_contain_text("from the memory: 100 %")
    [added] = [body for body in api.asked("/v1/memory") if body]
    pair = {"source": "Two dogs.", "target": "Zwei Hunde.", "before": "One dog."}
    assert added == {"memory": "laws", "pairs": [pair]}
    page.locator("#memory-box").evaluate("box => { box.open = true; }")
    page.select_option("#memory", "")  # None
    expect_translation(page, "DOG. ONE DOGS. TWO")
