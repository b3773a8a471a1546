"""A language is found by any of its codes, and a mistake names the nearest one."""

import re

import pytest

from nmt.data.languages import (
    LANGUAGES,
    closest_language,
    find_language,
    language_code,
    look_up_language,
    nearest,
)
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
        ("cmn", "zh", "Chinese"),
        ("cmn_Hans", "zh_Hans", "Chinese (simplified script)"),
        ("zho_simpl", "zh_Hans", "Chinese (simplified script)"),
        ("zho_trad", "zh_Hant", "Chinese (traditional script)"),
        ("zt", "zh_TW", "Chinese (traditional script)"),
        ("iw", "he", "Hebrew"),
        ("mo", "ro", "Romanian"),
        ("en_XX", "en", "English"),
        ("en ", "en", "English"),
        ("nds", "nds", "nds"),
    ],
)
def test_a_language_has_many_codes(given: str, code: str, name: str) -> None:
    language = find_language(given)
    assert (language.code, language.name) == (code, name)
    assert language.base == code.split("_")[0]


@pytest.mark.parametrize(
    ("given", "base"),
    [("xx", "xx"), ("xx-YY", "xx"), ("Some thing", "some thing"), ("mul", "mul"), ("", "")],
)
def test_a_language_that_the_table_lacks_keeps_its_code(given: str, base: str) -> None:
    language = look_up_language(given)
    assert (language.code, language.name, language.codes) == (given, given, {})
    assert language.base == base
    assert (language.script, language.is_unspaced) == ("", False)


@pytest.mark.parametrize(
    ("code", "tag", "script", "is_unspaced"),
    [
        ("zh_Hans", "zh-Hans", "Hans", True),
        ("zh_cn", "zh-CN", "Hans", True),
        ("zh_hk", "zh-HK", "Hant", True),
        ("zh_Latn", "zh-Latn", "Latn", False),
        ("lzh", "lzh", "Hans", True),
        ("jpn", "ja", "Jpan", True),
        ("ko", "ko", "Hang", False),
        ("sr", "sr", "Cyrl", False),
        ("sr_Latn", "sr-Latn", "Latn", False),
        ("azb", "azb", "Arab", False),
        ("es_419", "es-419", "Latn", False),
        ("bod", "bo", "Tibt", True),
        *((code, code, script, True) for code, script in [("my", "Mymr"), ("km", "Khmr")]),
    ],
)
def test_a_code_says_how_a_language_is_written(
    code: str, tag: str, script: str, is_unspaced: bool
) -> None:
    language = look_up_language(code)
    assert (language.tag, language.script, language.is_unspaced) == (tag, script, is_unspaced)


@pytest.mark.parametrize(
    ("code", "among", "found"),
    [
        ("EN", "en", "en"),
        ("zh-hans", "zh zh_Hans", "zh_Hans"),  # the same code
        ("zh-TW", "zh_Hans zh_Hant", "zh_Hant"),  # the script of the country
        ("zh-HK", "zh_Hans zh_Hant", "zh_Hant"),
        ("zh-Hant-HK", "zh_CN zh_TW", "zh_TW"),
        ("zh", "zh_Hant zh_Hans", "zh_Hans"),
        ("sr", "sr_Latn sr_Cyrl", "sr_Cyrl"),
        ("en-AU", "en_US en_GB", "en_GB"),
        ("pt-AO", "pt_BR pt_PT", "pt_PT"),
        ("cmn", "zh_Hans", "zh_Hans"),  # macrolanguages, old codes and aliases
        ("nob", "no", "no"),
        ("no", "nb", "nb"),
        ("nn", "no", "no"),
        ("nn", "nb nn", "nn"),
        ("iw", "he", "he"),
        ("he", "iw", "iw"),
        ("fil", "tl", "tl"),
        ("tgl", "fil", "fil"),
        ("arb", "ar", "ar"),
        ("swh", "sw", "sw"),
        ("zt", "zh_Hans zh_Hant", "zh_Hant"),
        ("pb", "pt pt_BR", "pt_BR"),
        ("jpn", "ja", "ja"),
        ("zh", "zh_Hant", "zh_Hant"),  # the only variant
        ("zh-TW", "zh_Hans", "zh_Hans"),
        ("pt-PT", "pt_BR", "pt_BR"),
        ("sr-RS", "sr_Latn", "sr_Latn"),
        ("zh-Hant", "zh", "zh"),
        ("zh-Hant", "zh_Hans", None),  # both name a script
        ("sr-Cyrl", "sr_Latn", None),
        ("hr", "sr_Latn bs", None),  # another language
        ("id", "ms", None),
        ("yue", "zh", None),
        ("xx", "en", None),
        ("auto", "en", None),
        ("", "en", None),
    ],
)
def test_a_code_finds_the_variant_that_stands_for_it(
    code: str, among: str, found: str | None
) -> None:
    assert closest_language(code, among.split()) == found
    assert closest_language(f" {code} ", among.split()) == found


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
    assert len(languages) == 266
    assert LANGUAGES["it"].codes == {"flores": "ita_Latn", "ntrex": "ref.ita", "tatoeba": "ita"}
    assert LANGUAGES["en"].codes["ntrex"] == "src.eng"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("English", "en"),
        (" norwegian bokmål ", "nb"),
        ("en", "en"),
        ("EN", "en"),
        ("deu", "deu"),
        ("DEU", "deu"),
        ("pt_BR", "pt_BR"),
        ("zho_Hant", "zho_Hant"),
        ("nds", "nds"),
    ],
)
def test_a_name_becomes_a_code_and_a_code_stays(given: str, code: str) -> None:
    assert language_code(given) == code


def test_a_word_that_is_neither_name_nor_code_is_told_with_the_nearest_language() -> None:
    with pytest.raises(ConfigError, match=re.escape("did you mean en (English)?")):
        language_code("Englsh")
