""".github/CITATION.cff names the version that it stands beside."""

from pathlib import Path

import nmt
from nmt.recipe import strict_yaml


def test_the_citation_is_of_this_version_and_has_what_the_format_requires(project: Path) -> None:
    path = project / ".github" / "CITATION.cff"
    citation, _ = strict_yaml.parse(path.read_text("utf-8"), path.name)
    required = {"cff-version": "1.2.0", "version": nmt.__version__, "license": "MIT"}
    assert {key: citation[key] for key in required} == required
    assert citation["message"] and citation["title"] and citation["authors"]
