"""The languages that elements of a page declare: which are translated, and what they say then."""

import re

from nmt.data.languages import closest_language, look_up_language
from nmt.translation.documents.document import LanguagePair
from nmt.translation.documents.tokens import Token
from nmt.translation.html.attributes import replace_attribute

ROOTS = ("html", "body")
"""elements that are the whole page"""
_ATTRIBUTES = ("lang", "xml:lang")
_NO_LANGUAGE = ("mul", "und", "zxx")
"""codes that name no language"""
_RIGHT_TO_LEFT = ("ar", "arz", "azb", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi")


def is_translated(languages: LanguagePair, token: Token) -> bool | None:
    """Return whether the element of a start tag is in the source language, by its `lang`.

    None: it does not say. The whole page is what the user says, whatever it declares.
    """
    code = (token.attribute("lang") or token.attribute("xml:lang") or "").strip()
    declared = look_up_language(code)
    # other values say nothing: "", "english", and X-NONE of Word
    is_code = declared.codes or re.fullmatch("[a-z]{3}", declared.base)
    if token.name in ROOTS or not is_code or declared.base in _NO_LANGUAGE:
        return None
    source = look_up_language(languages.source).base
    return languages.source == "und" or closest_language(declared.base, [source]) is not None


def declare_target(languages: LanguagePair, token: Token) -> None:
    """Write the target language into the start tag of an element that was translated.

    An element without a language stays without one. The direction of a page follows.
    """
    if languages.target == "und":
        return
    is_content_language = (
        token.name == "meta" and (token.attribute("http-equiv") or "").lower() == "content-language"
    )
    target = look_up_language(languages.target)
    for name in (*_ATTRIBUTES, "content") if is_content_language else _ATTRIBUTES:
        if token.attribute(name):
            replace_attribute(token, name, target.tag)
    direction = "rtl" if target.base in _RIGHT_TO_LEFT else "ltr"
    if token.name in ROOTS and (token.attribute("dir") or "").lower() in ("ltr", "rtl"):
        replace_attribute(token, "dir", direction)
