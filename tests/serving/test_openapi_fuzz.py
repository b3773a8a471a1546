"""Requests made from the OpenAPI description, right and wrong ones, by Schemathesis."""

import json
import subprocess
import sys
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.serving.server_processes import started

LONGEST_REQUEST = 30
"""seconds; a request that takes longer fails the test"""
LONGEST_RUN = 3600
"""seconds for all requests to one path"""
CHECKS = [
    *("--checks", "all"),
    *("--exclude-checks", "positive_data_acceptance,negative_data_rejection"),
]
"""not these: what has the right type may be no regular expression or no UTF-8, and an empty value
that is not described counts as missing, as in LibreTranslate"""
PATHS = ["/translate", "/detect", "/translate_file", "/download_file/{name}", "/v1/translate"]


@pytest.mark.parametrize(
    ("examples", "fewest"), [(30, 200), pytest.param(4100, 20_000, marks=pytest.mark.slow)]
)
def test_no_request_makes_the_server_fail(
    en_de: Path, tmp_path: Path, examples: int, fewest: int
) -> None:
    pytest.importorskip("schemathesis", reason="needs the extra nmt[fuzz]")
    with started(en_de, tmp_path) as server:
        url = f"http://127.0.0.1:{server.port}"
        with urllib.request.urlopen(f"{url}/openapi.json") as response:
            api = json.load(response)
        name_languages(api)
        description = tmp_path / "openapi.json"
        description.write_text(json.dumps(api))
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", str(description), "--url", url),
            *("--phases", "coverage,fuzzing", "--max-examples", str(examples), *CHECKS),
            *("--request-timeout", str(LONGEST_REQUEST), "--seed", "1", "--no-color"),
            *("--continue-on-failure", "--suppress-health-check", "all"),
        ]
        for path in PATHS:
            result = subprocess.run(
                [*command, "--include-path", path],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=LONGEST_RUN,
            )
            assert result.returncode == 0, result.stdout + result.stderr
        server.translate("a dog")
        statuses = Counter(int(event["status"]) for event in server.events("request"))
        print(f"{statuses.total()} requests, by status: {dict(sorted(statuses.items()))}")
        assert statuses.total() >= fewest
        assert max(statuses) < 500
        assert statuses[200] > fewest / 20
        assert server.events("error") == []


def name_languages(part: Any) -> None:
    """Write the languages of the run into a description: else few requests would have them."""
    if isinstance(part, dict):
        properties = part.get("properties", {})
        if "target" in properties and {"q", "text", "file"} & properties.keys():
            properties["source"] = {"enum": ["en", "de", "auto"]}
            properties["target"] = {"enum": ["de"]}
        part = list(part.values())
    for each in part if isinstance(part, list) else ():
        name_languages(each)
