"""One line of `nmt doctor`."""

from nmt.planning.check import failure, gigabytes, ok, warning


def test_a_line_shows_the_finding_and_the_remedy() -> None:
    assert str(ok("disk", "61.8 GB free")) == "ok       disk        61.8 GB free"
    assert str(warning("disk", "1 GB", "free some")) == "warning  disk        1 GB; free some"
    assert str(failure("x", "none", "get one")) == "failure  x           none; get one"
    assert gigabytes(1_250_000_000) == "1.2 GB"
