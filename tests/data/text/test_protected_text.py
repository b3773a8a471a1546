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


@pytest.mark.parametrize(
    "part",
    [
        # i18next, Vue, Angular, Handlebars, Mustache
        *(
            "{{count}}",
            "{{ user.name }}",
            "{{{name}}}",
            "{{- x}}",
            "$t(key)",
            "$t(a.b, { count: 1 })",
        ),
        *(
            "{{ 'X' | translate }}",
            "{{#if x}}",
            "{{/if}}",
            "{{> head}}",
            "__x__",
            "@:a.b",
            "@:(key)",
        ),
        "@.lower:key",
        # Rails, Ruby, Laravel, Fluent, Symfony
        *(
            "%{count}",
            "#{count}",
            "#{user.name}",
            "%<name>s",
            "%<price>.2f",
            ":name",
            ":Name",
            ":user_id",
        ),
        *("{ $name }", "{ NUMBER($n, digits: 2) }", "{ -brand-name }", "%count%", "%user.name%"),
        # printf, Python, Objective-C, Android, Qt, dates
        *(
            "%s",
            "%d",
            "%5.2f",
            "%-10s",
            "%+d",
            "%05d",
            "%*d",
            "%.*f",
            "%hhd",
            "%lld",
            "%zu",
            "%p",
            "%x",
        ),
        *(
            "%(name)s",
            "%(n)05.2f",
            "%@",
            "%1$s",
            "%2$d",
            "%1$@",
            "%1",
            "%L1",
            "%n",
            "%Y",
            "%H",
            "%%",
        ),
        *("{}", "{0}", "{0:C2}", "{0,-10}", "{name!r:>10}", "{user name}", "{ name }"),
        # Java and ICU
        *("{0,number,#.##}", "{0, date, short}", "{n, plural, one {# item} other {# items}}"),
        "{g, select, f {her {n, plural, one {cat} other {{n} cats}}} other {their cats}}",
        # templates
        *(
            "<%= x %>",
            "<% if a > b %>",
            "<%- x -%>",
            "{% if x %}",
            "{%- endif -%}",
            "{# note #}",
            "<?= $x ?>",
        ),
        *(
            "[[x]]",
            "[[user name]]",
            "${v}",
            "${a.b}",
            "$name",
            "$user.name",
            "$!name",
            "$!{name}",
            "@{x}",
        ),
        # addresses
        *(
            "https://x.org/a?b=1",
            "file:///a/b.txt",
            "ssh://git@x.org:22/y",
            "git+https://x.org",
            "s3://b/k",
        ),
        *(
            "sftp://x.org",
            "www.x.org",
            "mailto:a@b.org",
            "a.b@c.org",
            "&nbsp;",
            "&#160;",
            ":smile:",
        ),
    ],
)
def test_a_placeholder_is_found_whole(part: str) -> None:
    for text in (
        f"A {part} dog",
        f"A dog ({part}).",
        f"“{part}” is a dog",
        part,
        f"See {part}, and go",
    ):
        assert found(text) == [part]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "50 % of us",
            "50% off",
            "100 % durch 5",
            "20%ig",
            "5 %, 6%",
            "a 10% b",
            "50 %A",
            "5%-10%",
        ),
        *(
            "at 5:30",
            "10:30am",
            "me: hello",
            "Price:name",
            "a:b",
            "Re: x",
            "std::vector",
            "C:",
            "12:x",
        ),
        *(
            ":)",
            ":-)",
            ":D",
            ":p",
            "so :",
            "$5",
            "$ 5",
            "US$5",
            "$5.00 and 6$",
            "5$",
            "f(x)",
            "a[1]",
            "[1]",
        ),
        *(
            "[sic]",
            "(see a)",
            "a < b > c",
            "x = 5 & y",
            "AT&T",
            "_word_",
            "a__b",
            "snake_case",
            "#1 #tag",
        ),
        *(
            "a @ b",
            "@name",
            "foo@bar",
            "http://",
            "mail@",
            "{ not closed",
            "closed }",
            "1/2",
            "a://",
            "**b**",
        ),
        *("<b>", "a <% b", "[[ ]", "$", "%", "100 %."),
    ],
)
def test_plain_text_is_not_protected(text: str) -> None:
    assert found(text) == []


def test_what_is_not_known_is_not_torn_apart() -> None:
    assert found("a {b {c} {d {e} f} g} h") == ["{b {c} {d {e} f} g}"]
    assert found("a {b {c} d") == ["{c}"]


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


@pytest.mark.parametrize(
    "part",
    [
        "https://",
        "(",
        "a@",
        "%",
        "{",
        "a.",
        "&a",
        "www.(",
        "a",
        "{{",
        *(
            "{a",
            "{a}",
            "{a{b}",
            "<%",
            "<% ",
            "[[",
            "[[a",
            "__a",
            "$t(",
            "$a.",
            ":a",
            "%a",
            "a.b+",
            "@:a.",
            "<?",
        ),
    ],
)
def test_the_usual_patterns_take_linear_time(part: str) -> None:
    """Otherwise the limit on the time of a pattern would stop them."""
    for text in (part * 20_000, part * 20_000 + "@"):
        ProtectedText(USUAL_PATTERNS).find(text)
