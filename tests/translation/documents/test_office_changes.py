"""Tracked changes of Word are accepted."""

import pytest

from nmt.translation.documents.office_changes import accept_changes, has_changes
from nmt.translation.documents.office_parts import PREFIXES
from nmt.translation.documents.xml_tokens import XmlSource
from tests.office_files import W

TEXT = "<w:r><w:t>a</w:t></w:r>"
GONE = '<w:del w:id="1"><w:r><w:delText>x</w:delText></w:r></w:del>'
DELETED = f"<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>{GONE}</w:p>"
KEPT = f"<w:p>{TEXT}</w:p>"


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (f"<w:ins>{TEXT}</w:ins>{GONE}", TEXT),
        (
            f'<w:moveFromRangeStart w:id="1"/><w:moveFrom>{TEXT}</w:moveFrom>'
            f'<w:moveFromRangeEnd w:id="1"/><w:moveTo>{TEXT}</w:moveTo>',
            TEXT,
        ),
        (f"<w:ins>{GONE}{TEXT}</w:ins>", TEXT),
        ("<w:pPr><w:jc/><w:pPrChange><w:pPr/></w:pPrChange></w:pPr>", "<w:pPr><w:jc/></w:pPr>"),
        ("<w:rPr><w:b/><w:ins/></w:rPr>", "<w:rPr><w:b/></w:rPr>"),
        # whole paragraphs and rows
        (DELETED + KEPT, KEPT),
        (KEPT + DELETED, f"{KEPT}<w:p><w:pPr><w:rPr></w:rPr></w:pPr></w:p>"),
        (
            f"<w:tr><w:trPr><w:del/></w:trPr>{KEPT}</w:tr><w:tr>{KEPT}</w:tr>",
            f"<w:tr>{KEPT}</w:tr>",
        ),
    ],
)
def test_changes_are_accepted(inside: str, expected: str) -> None:
    source = XmlSource(f"<x {W}>{inside}</x>".encode(), "a", PREFIXES)
    assert has_changes(source.encode())
    accept_changes(source)
    assert source.encode().decode() == f"<x {W}>{expected}</x>"


def test_a_part_without_changes_has_none() -> None:
    assert not has_changes(f"<x {W}>{KEPT}<w:insideH/><w:delicate/></x>".encode())
