"""How fast `nmt serve` answers, beside `nmt translate` of a file and CTranslate2 behind FastAPI.

Clients send single sentences over connections that stay open. Each waits for its answer, and then
for a pause of an exponential distribution, so that requests come as a Poisson process would send
them. `of_translate` is the server's throughput over that of `nmt translate` on the same lines (the
time of all lines less that of one line, so that starting does not count). `of_latency` is the
median answer to a client that is alone over the median of `nmt.load(RUN).translate` of the same
sentences; both take turns, sentence by sentence, because a processor changes its speed within
seconds. The other server has the same weights in the same number format,
exported by us, the same beam, and as many workers of one thread as there are cores; it translates
each request by itself, as a route of FastAPI does.

The engines take turns, `--rounds` times. No sentence is sent twice to a server, so that no cache
can answer it.
"""

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from measuring import apart, report

from nmt.machine.processor import available_cores

Server = contextlib.AbstractContextManager[int]
LONGEST_START_S = 120.0
SETTLING_S = 2.0
"""`nmt serve` prepares itself for about a second after it has begun to listen"""


@contextlib.contextmanager
def nmt(run: str, precision: str) -> Iterator[int]:
    """Start `nmt serve` of a run, and yield its port."""
    with tempfile.TemporaryDirectory() as name:
        log, config = Path(name) / "log", Path(name) / "serve.yaml"
        config.write_text(f"models: [{json.dumps(os.path.abspath(run))}]\nprecision: {precision}\n")
        command = [sys.executable, "-m", "nmt", "serve", "--config", str(config), "--port", "0"]
        with log.open("w") as file:
            process = subprocess.Popen(command, stderr=file)
        try:
            yield _port_in(log)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _port_in(log: Path) -> int:
    """Wait for the line of a server's log that says where it listens; return the port."""
    end = time.monotonic() + LONGEST_START_S
    while time.monotonic() < end:
        lines = [json.loads(line) for line in log.read_text().splitlines() if line[:1] == "{"]
        for line in lines:
            if line["event"] == "listening":
                return int(line["port"])
        time.sleep(0.05)
    sys.exit(f"nmt serve does not listen: {log.read_text()}")


@contextlib.contextmanager
def ctranslate2(run: str, precision: str) -> Iterator[int]:
    """Start a server of the same weights with CTranslate2 and FastAPI, and yield its port."""
    context = multiprocessing.get_context("spawn")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    process = context.Process(target=_serve_ctranslate2, args=(run, precision, port))
    process.start()
    try:
        end = time.monotonic() + LONGEST_START_S
        while time.monotonic() < end and process.is_alive():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.join()


def _serve_ctranslate2(run: str, precision: str, port: int) -> None:
    """Serve POST /translate as a short program with both libraries would."""
    import torch
    import uvicorn
    from ctranslate2 import Translator
    from fastapi import FastAPI
    from sentencepiece import SentencePieceProcessor

    from nmt.exchange.ctranslate2 import export_ctranslate2
    from nmt.run.model import load_model

    model = load_model(run, torch.device("cpu"))
    decoding = model.config.decoding
    kind: Any = "int8" if precision == "int8" else "float32"
    with tempfile.TemporaryDirectory() as folder:
        export_ctranslate2(model, Path(folder), None if kind == "float32" else kind)
        source = SentencePieceProcessor(model_file=f"{folder}/source.spm")
        target = SentencePieceProcessor(model_file=f"{folder}/target.spm")
        translator = Translator(
            folder, compute_type=kind, inter_threads=available_cores(), intra_threads=1
        )
    del model
    application = FastAPI()

    @application.post("/translate")
    def translate(body: dict[str, Any]) -> dict[str, str]:
        pieces = source.encode(body["q"], out_type=str)
        [found] = translator.translate_batch(
            [pieces],
            beam_size=decoding.beam_size,
            length_penalty=1.0,
            max_decoding_length=len(pieces) + decoding.max_length_offset,
        )
        return {"translatedText": target.decode(found.hypotheses[0])}

    uvicorn.run(application, port=port, log_level="error", access_log=False)


def under_load(
    port: int, languages: tuple[str, str], lines: Sequence[str], clients: int, pause_s: float
) -> dict[str, float]:
    """Return sentences per second, and the milliseconds of the answers, of a server under load."""
    waits: list[float] = []
    remaining = iter(lines)
    taking = threading.Lock()
    source, target = languages

    def send_lines(number: int) -> None:
        pauses = random.Random(number)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while True:
            time.sleep(pauses.expovariate(1 / pause_s))
            with taking:
                line = next(remaining, None)
            if line is None:
                return connection.close()
            start = time.perf_counter()
            _ask(connection, {"q": line, "source": source, "target": target})
            waits.append(1000 * (time.perf_counter() - start))

    threads = [threading.Thread(target=send_lines, args=(number,)) for number in range(clients)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    if len(waits) < len(lines):
        sys.exit(f"{len(lines) - len(waits)} of {len(lines)} requests had no answer")
    percentiles = statistics.quantiles(waits, n=100)
    return {
        "sentences_per_second": len(lines) / seconds,
        **{f"p{n}_ms": percentiles[n - 1] for n in (50, 95, 99)},
    }


def _ask(connection: http.client.HTTPConnection, body: dict[str, str]) -> None:
    """Send a request, read its answer to the end, and stop the measurement if it is an error."""
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/translate", json.dumps(body), headers)
    response = connection.getresponse()
    answer = response.read()
    if response.status != 200:
        raise RuntimeError(f"status {response.status}: {answer.decode()}")


def alone(
    port: int,
    run: str,
    precision: str,
    languages: tuple[str, str],
    lines: Sequence[str],
    pause_s: float,
) -> dict[str, float]:
    """Measure a server and `nmt.load(RUN).translate` in turn, one sentence at a time."""
    import nmt

    translator = nmt.load(run, precision=precision)
    translator.translate(lines[:1])
    source, target = languages
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    pauses = random.Random(0)
    waits: dict[str, list[float]] = {"server": [], "library": []}
    for line in lines:
        for engine in waits:
            time.sleep(pauses.expovariate(1 / pause_s))
            start = time.perf_counter()
            if engine == "server":
                _ask(connection, {"q": line, "source": source, "target": target})
            else:
                translator.translate([line])
            waits[engine].append(1000 * (time.perf_counter() - start))
    medians = {engine: statistics.median(waits[engine]) for engine in waits}
    return {
        "p50_ms": medians["server"],
        "library_p50_ms": medians["library"],
        "of_latency": medians["server"] / medians["library"],
    }


def translated_file(run: str, precision: str, lines: Sequence[str]) -> dict[str, float]:
    """Measure `nmt translate` of the lines, without the time of its start."""

    def seconds(part: Sequence[str]) -> float:
        command = [sys.executable, "-m", "nmt", "translate", "--model", run]
        start = time.perf_counter()
        subprocess.run(
            [*command, "--precision", precision],
            input="\n".join(part) + "\n",
            text=True,
            check=True,
            capture_output=True,
        )
        return time.perf_counter() - start

    to_start = min(seconds(lines[:1]) for _ in range(2))
    return {"sentences_per_second": len(lines) / (seconds(lines) - to_start)}


def make_parser() -> argparse.ArgumentParser:
    """The options of this benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True, help="run directory")
    parser.add_argument(
        "--source", type=Path, required=True, help="different sentences, a line each"
    )
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--lines", type=int, default=500, help="for each number of clients")
    parser.add_argument("--precision", choices=["int8", "fp32"], default="int8")
    parser.add_argument("--pause-ms", type=float, default=5.0, help="mean pause of a client")
    parser.add_argument("--rounds", type=int, default=3)
    return parser


def main() -> None:
    """Measure the servers in turn, and what they are compared with."""
    parser = make_parser()
    arguments = parser.parse_args()
    run, precision = arguments.model, arguments.precision
    texts = arguments.source.read_text("utf-8").split("\n")
    lines = list(dict.fromkeys(text for text in texts if text.strip()))
    count, pause_s = arguments.lines, arguments.pause_ms / 1000
    first, *parts = [lines[i * count :][:count] for i in range(1 + len(arguments.clients))]
    if len(parts[-1]) < count:
        needed = (1 + len(arguments.clients)) * count
        parser.error(f"--source has {len(lines)} different lines, expected at least {needed}")
    languages = languages_of(run)
    for number in range(arguments.rounds):
        common = {"model": run, "precision": precision, "round": number}
        file = translated_file(run, precision, parts[-1])
        report("serve", engine="nmt translate", **common, **file)
        for engine in (nmt, ctranslate2):
            start: Server = engine(run, precision)
            with start as port:
                under_load(port, languages, lines[-20:], 4, 0.001)  # to warm up
                time.sleep(SETTLING_S)
                latency = apart(alone, port, run, precision, languages, first, pause_s)
                report("serve", engine=engine.__name__, clients="alone", **common, **latency)
                for clients, part in zip(arguments.clients, parts, strict=True):
                    measured = under_load(port, languages, part, clients, pause_s)
                    ratio = measured["sentences_per_second"] / file["sentences_per_second"]
                    measured["of_translate"] = ratio
                    report("serve", engine=engine.__name__, clients=clients, **common, **measured)


def languages_of(run: str) -> tuple[str, str]:
    """Return the languages of source and target of a run."""
    from nmt.recipe.config_file import load_config
    from nmt.run.directory import find_run

    data = load_config(str(find_run(Path(run)).config)).data
    return data.source_language, data.target_language


if __name__ == "__main__":
    main()
