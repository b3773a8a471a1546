import pytest

from nmt.data.text import protected_text
from nmt.data.text.protected_text import USUAL_PATTERNS, ProtectedText
from nmt.errors import ConfigError, DataError


def found(text: str, patterns: tuple[str, ...] = USUAL_PATTERNS) -> list[str]:
    return [text[start:end] for start, end in ProtectedText(patterns).find(text)]


@pytest.mark.parametrize(
    ("text", "protected"),
    [
        ("See https://x.org/a_(b)?q=1&r=2#z.", ["https://x.org/a_(b)?q=1&r=2#z"]),
        ("(www.y.de), “http://z.eu/a,b”! ftp://f/", ["www.y.de", "http://z.eu/a,b", "ftp://f/"]),
        ("Mail a.b+c@d-e.co.uk, or mailto:x@y.de.", ["a.b+c@d-e.co.uk", "mailto:x@y.de"]),
        ("Hello {name}, {{ user.name }}, {{x}}: {0} {}", "{name} {{ user.name }} {{x}} {0} {}"),
        ("${v} and ${a.b} cost $5", ["${v}", "${a.b}"]),
        ("%s has %d of %(name)s, %1$s %-5.2f %%", "%s %d %(name)s %1$s %-5.2f %%"),
        ("100% sure, 5 % der, 20%ig, x = {a b}", []),
        ("&amp; &nbsp; &#169; &#xA9; AT&T; & x", ["&amp;", "&nbsp;", "&#169;", "&#xA9;"]),
        ("{a}{b}{{c}}", ["{a}{b}{{c}}"]),  # parts that touch are one
        ("a @ b, foo@bar, http://, mail@", []),
    ],
)
def test_addresses_and_placeholders_are_found(text: str, protected: list[str] | str) -> None:
    if isinstance(protected, str):
        protected = protected.replace("{ ", "{_").replace(" }", "_}").split()
        protected = [part.replace("_", " ") for part in protected]
    assert found(text) == protected


def test_own_patterns_are_found_and_the_longer_of_two_matches_counts() -> None:
    assert found("ABC-12 and abc-3", (r"[A-Z]+-\d+",)) == ["ABC-12"]
    assert found("see ABC-12x", (r"[A-Z]+-\d+", r"[A-Z]+-\w+")) == ["ABC-12x"]
    assert found("aXbXc", (r"aX", r"Xb")) == ["aX"]
    assert found("nothing", ()) == []
    assert found("a b", (r"(?=b)",)) == []  # a match without characters protects nothing


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "is no regular expression: missing"),
        ("*", "put a backslash before characters that stand for themselves"),
        ("a*", r"the protected pattern 'a\*' matches the empty string; write \+ instead of \*"),
        ("", "matches the empty string"),
        ("(?:(?:a?){300}){300}", "has more than 20000 characters once its repetitions such as"),
        ("(?x) (?:(?:a?){3 00} ) {300,}b", "are written out; write smaller numbers, or +"),
        ("(?:(?:a?){300}(?#comment)){300}b", "more than 20000 characters"),
        (f"a{{{'9' * 5000}}}", "more than 20000 characters"),
        (r"(?:(?:(?:a?)(?#\){300})(?#\){300})(?#\){300}b", "more than 20000 characters"),
        (r"(?x)\ {30000}", "more than 20000 characters"),
        (r"\\{30000}", "more than 20000 characters"),
        ("(?x)(?:(?:a?){3#\n00}){300}b", r"holds a line break; write \\n for it"),
        (r"(?:a?|b?){40}(?<!^)", "takes too long even without a text; write it without"),
    ],
)
def test_a_pattern_without_sense_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ProtectedText([pattern])


def test_repetitions_beside_each_other_do_not_multiply() -> None:
    """A UUID repeats five parts, and none inside another."""
    lengths = (8, 4, 4, 4, 12)
    pattern = "-".join(f"([0-9a-f]{{{length}}})" for length in lengths)
    uuid = "-".join("0" * length for length in lengths)
    assert found(f"{uuid} 0-0", (pattern, r"(?:\d{1,3}\.){3}\d{1,3}")) == [uuid]


def test_long_patterns_and_escaped_braces_are_no_repetitions() -> None:
    names = [f"Product{number}" for number in range(3000)]
    assert found("a Product2999 {{10000}}", ("|".join(names[::-1]), r"\{\{10000\}\}")) == [
        *("Product2999", "{{10000}}")
    ]


def test_all_patterns_together_have_little_time() -> None:
    with pytest.raises(ConfigError, match="takes too long even without a text"):
        ProtectedText([r"(?:a?|b?){17}(?<!^)"] * 20)


def test_a_pattern_of_exponential_time_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected_text, "SECONDS_PER_TEXT", 0.05)
    patterns = ProtectedText([r"(a|aa)+$"])
    with pytest.raises(DataError, match="write it without repetitions inside repetitions"):
        patterns.find("a" * 50 + "b")


@pytest.mark.parametrize("part", ["https://", "(", "a@", "%", "{", "a.", "&a", "www.(", "a", "{{"])
def test_the_usual_patterns_take_linear_time(part: str) -> None:
    """Otherwise the limit on the time of a pattern would stop them."""
    for text in (part * 20_000, part * 20_000 + "@"):
        ProtectedText(USUAL_PATTERNS).find(text)
