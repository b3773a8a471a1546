"""The mark of a key leaves a label for the model, and comes back into its translation."""

import pytest

from nmt.translation.documents.accelerators import Accelerator, put_accelerator, take_accelerator


@pytest.mark.parametrize(
    ("label", "without", "mark", "key"),
    [
        ("&Open", "Open", "&", "O"),
        ("O&pen...", "Open...", "&", "p"),
        ("Save &as", "Save as", "&", "a"),
        ("_Open", "Open", "_", "O"),
        ("E_xit", "Exit", "_", "x"),
        ("Re_place All", "Replace All", "_", "p"),
        ("Save & &quit", "Save & &quit", "", ""),
        ("&Tom &amp; Jerry", "Tom &amp; Jerry", "&", "T"),
        ("打开(&O)...", "打开...", "&", "O"),
        ("開く(_O)", "開く", "_", "O"),
        # no keys
        ("R&D", "R&D", "", ""),
        ("AT&T", "AT&T", "", ""),
        ("a & b", "a & b", "", ""),
        ("&amp; a", "&amp; a", "", ""),
        ("see x?a=1&b=2", "see x?a=1&b=2", "", ""),
        ("My user_name", "My user_name", "", ""),
        ("the _id", "the _id", "", ""),
        ("Save as _file.txt", "Save as _file.txt", "", ""),
        ("a __x__ b", "a __x__ b", "", ""),
        ("_Open " + "a " * 60, "_Open " + "a " * 60, "", ""),
        ("", "", "", ""),
    ],
)
def test_a_label_is_read_without_the_mark_of_its_key(
    label: str, without: str, mark: str, key: str
) -> None:
    assert take_accelerator(label) == (without, Accelerator(mark, key) if mark else None)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("Öffnen", "&Öffnen"),
        ("„Öffnen“", "„&Öffnen“"),
        ("%s <b>x</b> {name}", "%s <b>&x</b> {name}"),
        ("\n &lt;b&gt;x", "\n &lt;b&gt;&x"),
        ("打开…", "打开(&O)…"),
        ("열기", "열기(&O)"),
        ("%s 12", "%s 12"),
    ],
)
def test_the_mark_comes_before_the_first_letter_of_a_translation(
    source: str, expected: str
) -> None:
    assert put_accelerator(source, Accelerator("&", "o")) == expected
