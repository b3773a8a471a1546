"""Plural forms: those of gettext's manual and of CLDR, for the language and not its letters."""

import pytest

from nmt.translation.documents.plural_forms import declared_forms, plural_forms


@pytest.mark.parametrize(
    ("language", "forms"),
    [  # of the numbers 0, 1, 2, 5, 11, 21, 101
        ("de", "other one other other other other other"),
        ("eng", "other one other other other other other"),
        ("fr", "one one other other other other other"),
        ("pt", "other one other other other other other"),
        ("pt_BR", "one one other other other other other"),
        ("ko", "other other other other other other other"),
        ("kok", "other one other other other other other"),
        ("zh_Hant", "other other other other other other other"),
        ("ru", "many one few many many one one"),
        ("sr_Latn", "many one few many many one one"),
        ("pl", "many one few many many many many"),
        ("cs", "other one few other other other other"),
        ("lv", "zero one other other other one one"),
        ("sl", "other one two other other other one"),
        ("ar", "zero one two few many many other"),
    ],
)
def test_a_number_takes_the_form_of_its_language(language: str, forms: str) -> None:
    found = plural_forms(language)
    assert found.count == len(found.categories)
    declared = declared_forms(f"nplurals={found.count}; plural=({found.rule});")
    assert declared and declared.count == found.count
    numbers = (0, 1, 2, 5, 11, 21, 101)
    assert " ".join(found.categories[found.form(n)] for n in numbers) == forms
    is_exact = forms.split().count(forms.split()[1]) == 1
    assert found.is_singular_exact == is_exact and found.singular == found.form(1)


@pytest.mark.parametrize(
    "text",
    ["", "nplurals=INTEGER; plural=EXPRESSION;", "nplurals=0; plural=0;", "nplurals=99; plural=n;"]
    + [f"nplurals=2; plural={rule};" for rule in ("((", "n/0", "x", "1/(n-7)", "n" * 2000)],
)
def test_what_declares_no_forms_is_none(text: str) -> None:
    assert declared_forms(text) is None
