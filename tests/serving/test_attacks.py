"""While the costliest requests that the limits allow are answered, another client is served."""

import http.client
import json
import threading
import time
from pathlib import Path

import pytest

from tests.serving.attacks import Attack, attacks
from tests.serving.server_processes import ServerProcess, started

QUICK = 0.02
"""scale of the attacks of the quick test"""
QUICK_ATTACKS = (
    *("prefix: one letter", "overlapping terms", "forbidden letters", "html: less than"),
    *("protect: quadratic", "file: one cue .srt", "body: fields", "body: texts"),
)
ATTACK_SECONDS = 10.0
"""then the attacker leaves"""


def send(server: ServerProcess, attack: Attack, address: str, seconds: float) -> int | None:
    """Send a request; return the status, or None for an attacker who does not wait so long."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=seconds)
    headers = {"Content-Type": attack.content_type, "X-Forwarded-For": address}
    try:
        connection.request("POST", attack.path, attack.body, headers)
        response = connection.getresponse()
        response.read()
        return response.status
    except TimeoutError:
        return None
    finally:
        connection.close()


def slowest_of_another_client(server: ServerProcess, attack: Attack, count: int) -> float:
    """Attack `count` times at once, and return the longest time of a short sentence meanwhile."""
    slowest, statuses = 0.0, list[int | None]()

    def strike() -> None:
        statuses.append(send(server, attack, "10.0.0.1", ATTACK_SECONDS))

    threads = [threading.Thread(target=strike) for _ in range(count)]
    for thread in threads:
        thread.start()
    is_last, n = False, 0
    while not is_last:
        is_last = not any(thread.is_alive() for thread in threads)
        body = {"q": f"Dog {n} runs.", "source": "en", "target": "de"}
        sentence = Attack("", "/translate", json.dumps(body).encode())
        start = time.monotonic()
        assert send(server, sentence, "10.0.0.2", 60) == 200
        slowest = max(slowest, time.monotonic() - start)
        n += 1
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    allowed = {200, 400, 403, 413, 503, None}
    assert set(statuses) <= allowed, (attack.name, statuses)
    return slowest


def test_small_attacks_are_answered_by_a_sentence_or_a_translation(
    en_de: Path, tmp_path: Path
) -> None:
    with started(en_de, tmp_path) as server:
        for attack in attacks(QUICK):
            if attack.name not in QUICK_ATTACKS:
                continue
            assert slowest_of_another_client(server, attack, 1) < 5, attack.name
        assert not server.events("error")
        start = time.monotonic()
        server.stop()
        assert time.monotonic() - start < 30


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 6])
def test_another_client_is_served_within_a_second(en_de: Path, tmp_path: Path, count: int) -> None:
    limit = 1.0
    slow: dict[str, float] = {}
    with started(en_de, tmp_path) as server:
        # wait until PyTorch is loaded, which keeps others out for a second
        asked = {"text": "a dog", "source": "en", "target": "de", "alignments": True}
        assert server.post("/v1/translate", **asked)[0] == 200
        for attack in attacks():
            seconds = slowest_of_another_client(server, attack, count)
            print(f"{attack.name:40} {count} {seconds:6.2f} s")
            if seconds > limit:
                slow[attack.name] = seconds
        assert not server.events("error")
    assert not slow, slow
