"""Which values of a file of data are texts, and which a user chooses."""

import time

import pytest

from nmt.translation.documents.chosen_values import ChosenValues, is_text
from nmt.translation.documents.data_values import DataValue
from nmt.translation.documents.document import ReadingOptions


@pytest.mark.parametrize(
    "text",
    [
        "Hello",
        "submit",
        "OK",
        "A small dog.",
        "sign-in",
        "24h-Service",
        "and/or",
        "e.g.",
        "YouTube",
        "Yes!",
        "it",
        "Name:",
        "12 May 2020",
        "Price: {price}",
        "<b>Hi</b>",
        "第1章",
        "Name: ____",
        "Mess",
        "add",
        "See https://a.org",
        "a.b and c_d",
        "Grüße",
    ],
)
def test_a_text_is_one(text: str) -> None:
    assert is_text(text, "title")


@pytest.mark.parametrize(
    "text",
    [
        "https://a.org/b?c=d",
        "mailto:a@b.org",
        "www.a.org",
        "a@b.org",
        "/images/a",
        "./a/b",
        "C:\\Program Files\\a",
        "text/html; charset=utf-8",
        "btn_ok",
        "MAX_SIZE",
        "_blank",
        "btnOk",
        "logo.png",
        "img/a.svg",
        "app.menu.title",
        "$name",
        ":year",
        "v1.2.3",
        "utf8",
        "col-md-6",
        "2020-01-01T12:00:00Z",
        "123e4567-e89b-12d3-a456-426614174000",
        "#ff00aa",
        "rgba(0, 0, 0, 0.5)",
        "en-US",
        "zh_Hant",
        "dd.MM.yyyy HH:mm",
        "MMM d, yyyy",
        "%a, %d %b %Y",
        "10px",
        " btn_ok ",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert not is_text(text, "title")


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("type", "button", False),
        ("type", "Button", True),
        ("type", "a button", True),
        ("menu.type", "button", False),
        ("prototype", "button", True),
        ("@type", "Product", False),
        ("icon", "arrow-left", False),
    ],
)
def test_some_keys_have_codes(key: str, text: str, expected: bool) -> None:
    assert is_text(text, key) is expected


VALUES = ["title", "menu.title", "menu.items.title", "menu.items.btn", "menu.note", "a.menu.note"]


@pytest.mark.parametrize(
    ("keys", "skipped", "expected"),
    [
        ((), (), "title menu.title menu.items.title menu.note a.menu.note"),
        (("title",), (), "title menu.title menu.items.title"),
        (("menu.items",), (), "menu.items.title"),
        (("menu.items.btn",), (), "menu.items.btn"),
        (("menu.*",), (), "menu.title menu.items.title menu.note a.menu.note"),
        (("*.items.*",), (), "menu.items.title menu.items.btn"),
        (("t*e",), (), "title menu.title menu.items.title"),
        ((), ("menu",), "title"),
        (("menu",), ("items", "title"), "menu.note a.menu.note"),
        (("btn", "note"), (), "menu.items.btn menu.note a.menu.note"),
    ],
)
def test_keys_choose_values(keys: tuple[str, ...], skipped: tuple[str, ...], expected: str) -> None:
    chosen = ChosenValues(ReadingOptions(key=keys, skip_key=skipped))
    values = [
        DataValue(tuple(path.split(".")), (0, 0), "btn_ok" if "btn" in path else "A text", str)
        for path in VALUES
    ]
    assert [".".join(each.path) for each in chosen.among(values, "a.json")] == expected.split()


def test_a_key_that_is_nowhere_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ChosenValues(ReadingOptions(key=("titel",), skip_key=("menu.item",)))
    chosen.among([DataValue(tuple(path.split(".")), (0, 0), "A", str) for path in VALUES], "a.json")
    assert capsys.readouterr().err == (
        "warning: a.json: no text has the key 'menu.item'; did you mean 'menu.items'?\n"
        "warning: a.json: no text has the key 'titel'; did you mean 'title'?\n"
    )


@pytest.mark.parametrize(
    "unit", ["a", "a_", "a.", "a-", "1-", "ab/", "A0", "aB", "yy ", "@a", "\\"]
)
def test_a_long_value_takes_linear_time(unit: str) -> None:
    start = time.process_time()
    is_text(unit * 200_000 + "!", "title")
    assert time.process_time() - start < 2
