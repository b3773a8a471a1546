import pytest

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.search.spelling import Spelling
from nmt.search.target_prefix import TargetPrefix


@pytest.fixture(scope="module")
def spelling(byte_tokenizer: Tokenizer) -> Spelling:
    return Spelling(byte_tokenizer)


@pytest.mark.parametrize("prefix", ["Der Hund", "Der Hund ", "Жук", "ein  kleiner", "a\tb"])
def test_its_required_ids_spell_it_and_then_nothing_is_required(
    spelling: Spelling, prefix: str
) -> None:
    target = TargetPrefix.spell(prefix, spelling)
    ids: list[int] = []
    while required := target.required(spelling, len(ids), spelling.spelled(ids)):
        ids.append(required[-1])
    assert target.required(spelling, len(ids), spelling.spelled(ids)) is None
    assert spelling.spelled(ids).startswith(target.text)
    assert target.decoded(spelling).split() == prefix.split()


def test_a_blank_one_requires_nothing(spelling: Spelling) -> None:
    assert TargetPrefix.spell("  ", spelling).required(spelling, 0, b"") is None
