"""A language is found by any of its codes, and a mistake names the nearest one."""

import re

import pytest

from nmt.data.languages import LANGUAGES, find_language, look_up_language, nearest
from nmt.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "code", "name"),
    [
        ("it", "it", "Italian"),
        ("IT", "it", "Italian"),
        ("ita", "it", "Italian"),
        ("ger", "de", "German"),
        ("deu", "de", "German"),
        ("arb", "ar", "Arabic"),
        ("ceb", "ceb", "Cebuano"),
        ("pt_BR", "pt_BR", "Portuguese (Brazil)"),
        ("pt-br", "pt_br", "Portuguese (Brazil)"),
        ("zho_Hant", "zh_Hant", "Chinese (traditional script)"),
        ("de_AT", "de_AT", "German (AT)"),
        ("nds", "nds", "nds"),
    ],
)
def test_a_language_has_many_codes(given: str, code: str, name: str) -> None:
    language = find_language(given)
    assert (language.code, language.name) == (code, name)
    assert language.base == code.split("_")[0]


@pytest.mark.parametrize(
    ("given", "base"), [("xx", "xx"), ("xx-YY", "xx"), ("Some thing", "some thing"), ("", "")]
)
def test_a_language_that_the_table_lacks_keeps_its_code(given: str, base: str) -> None:
    language = look_up_language(given)
    assert (language.code, language.name, language.codes) == (given, given, {})
    assert language.base == base


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("italian", "it (Italian)"),
        ("English", "en (English)"),
        ("xx", ""),
        ("", ""),
        ("../it", "it (Italian)"),
        ("it it", ""),
        ("nds_Latn", ""),
    ],
)
def test_a_word_that_is_no_code_is_told_with_the_nearest_language(given: str, hint: str) -> None:
    message = f"'{given}' is not the code of a language, such as en or ita; did you mean {hint}"
    with pytest.raises(ConfigError, match=re.escape(message)):
        find_language(given)
    assert re.fullmatch(r"\w+ \(.+\)", nearest(given))


def test_every_code_leads_to_one_language_and_every_corpus_has_its_codes() -> None:
    languages = set(map(id, LANGUAGES.values()))
    columns = {"flores": 204, "ntrex": 128}
    for column, count in columns.items():
        codes = {language.codes[column] for language in LANGUAGES.values()} - {""}
        assert len(codes) == count
    assert len(languages) == 265
    assert LANGUAGES["it"].codes == {"flores": "ita_Latn", "ntrex": "ref.ita", "tatoeba": "ita"}
    assert LANGUAGES["en"].codes["ntrex"] == "src.eng"
