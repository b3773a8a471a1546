"""`nmt report`: a page that holds what the run is, and says what it lacks."""

import html
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import ConfigError, NmtError
from nmt.training.validation import ExampleTranslation, write_examples
from tests.cli.commands import fail, invoke, succeed

NASTY = "</script><script>document.title = 'taken over'</script>"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def make_report(run: Path, output: Path, *options: str) -> str:
    """The page that a successful command writes."""
    command = ("report", "--model", run, "-o", output, "--device", "cpu")
    assert succeed(*command, *options) == f"{output}\n"
    return output.read_text("utf-8")


@pytest.fixture(scope="session")
def lived_run(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny run with figures and translations, as if it had been trained."""
    run = tmp_path_factory.mktemp("lived") / "a <b> run"
    shutil.copytree(tiny_run, run)
    train = {"event": "train", "learning_rate": 1e-3, "tokens_per_second": 10.0}
    records: list[dict[str, Any]] = []
    for step in range(10, 310, 10):
        figures = {"step": step, "loss": 5 - step / 100, "seconds": float(step)}
        records.append({**train, **figures, "target_tokens": 40 * step})
        if step % 50 == 0:
            records.append({"event": "validation", "bleu": step / 10, "perplexity": 9, **figures})
            texts = [("a small dog", "ein kleiner Hund", f"Hund {step} {NASTY}"), ("a", "b", "")]
            write_examples(
                run / "translations", step, [ExampleTranslation(*text) for text in texts]
            )
    (run / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records), "utf-8")
    (run / "environment.json").write_text('{"precision": "bf16", "git": "<i>abc"}', "utf-8")
    return run


@pytest.fixture
def copy(lived_run: Path, tmp_path: Path) -> Path:
    """A copy of the run, which a test may change."""
    return Path(shutil.copytree(lived_run, tmp_path / "changed"))


@pytest.fixture(scope="session")
def page(lived_run: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_report(lived_run, tmp_path_factory.mktemp("page") / "new" / "report.html")


def test_every_chapter_is_there_and_none_is_empty(page: str) -> None:
    chapters = re.findall(r'<section id="(\w+)"><h2>', page)
    assert chapters == [
        *("summary", "training", "quality", "translations", "attention", "data", "configuration")
    ]
    assert all(f'href="#{chapter}"' in page for chapter in chapters)
    assert "3 sentences" in page and "The worst sentences" in page and "BLEU" in page
    assert 'id="attention-data"' in page and ">bf16<" in page
    assert "environment.json does not say what the run was trained on" in page


def test_text_never_becomes_markup(page: str) -> None:
    assert NASTY not in page and html.escape(NASTY, quote=True).split()[0] in page
    assert page.count("<script") == 2  # the attention data and the page's own
    assert "<i>abc" not in page and "a &lt;b&gt; run" in page


def test_the_report_lies_in_the_run_unless_told_otherwise(lived_run: Path) -> None:
    written = lived_run / "report.html"
    command = ("report", "-m", lived_run, "--sentences", 0, "--device", "cpu")
    assert succeed(*command) == f"{written}\n"
    assert "as --sentences 0 asked for" in written.read_text("utf-8")
    written.unlink()


def test_a_run_that_has_just_begun_has_a_report(copy: Path, tmp_path: Path) -> None:
    for folder in ("checkpoints", "translations"):
        shutil.rmtree(copy / folder)
    (copy / "metrics.jsonl").unlink()
    (copy / "environment.json").write_text("[]", "utf-8")
    page = make_report(copy, tmp_path / "report.html")
    for sentence in (
        *("There are no weights to look into", "No figures are recorded yet"),
        *("The run has kept no translations", "metrics.jsonl: no metrics here"),
        "no readable environment.json",
    ):
        assert sentence in page
    assert "Traceback" not in page


def test_a_broken_record_is_named_and_not_swallowed(copy: Path, tmp_path: Path) -> None:
    (copy / "metrics.jsonl").write_text('{"step": 1}\n{"st\n{"step": 3}\n', "utf-8")
    page = make_report(copy, tmp_path / "report.html", "--sentences", "0")
    assert "metrics.jsonl:2: not a metrics record" in page


def test_files_of_a_run_that_hold_nonsense_are_no_end(copy: Path, tmp_path: Path) -> None:
    records = [
        {"event": "validation", "step": 5, "loss": "low", "bleu": None, "seconds": []},
        {"event": "validation", "step": "x", "loss": 3},
        {"event": "train", "step": 10, "loss": 4, "seconds": "long", "tokens_per_second": {}},
        {"event": "roll_back", "step": 8},
        {"loss": 2},
    ]
    text = "".join(json.dumps(record) + "\n" for record in records)
    (copy / "metrics.jsonl").write_text(text + '{"event": "train", "step": 12, "loss": NaN}\n')
    environment = '{"data_fingerprint": 5, "resumed": 3, "started": null, "libraries": []}'
    (copy / "environment.json").write_text(environment)
    (copy / "best.json").write_text('{"candidates": {"a": 1, "b": {"loss": "x"}}, "weights": ""}')
    page = make_report(copy, tmp_path / "report.html", "--sentences", "0", "--checkpoint", "last")
    assert "records without a step are left out: 2." in page
    assert "12 of " in page and "taken back: 8 (to None)." in page


def test_where_it_cannot_be_written_is_told_at_once(
    lived_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("nmt.report.run_report.write_report", None)  # it does not come to that
    page = tmp_path / "file" / "report.html"
    message = fail(NmtError, "report", "-m", lived_run, "-o", page)
    assert f"{page}: cannot be written: Not a directory" in message


@pytest.mark.parametrize("name", ["config.yaml", "metrics.jsonl"])
def test_an_output_that_would_replace_a_file_of_the_run_is_an_error(
    lived_run: Path, name: str
) -> None:
    before = (lived_run / name).read_bytes()
    message = fail(ConfigError, "report", "-m", lived_run, "-o", lived_run / name)
    assert "the same file, which would be replaced" in message
    assert (lived_run / name).read_bytes() == before


def test_a_link_and_a_device_stay_what_they_are(lived_run: Path, tmp_path: Path) -> None:
    link, page = tmp_path / "link.html", tmp_path / "page.html"
    link.symlink_to(page)
    device = tmp_path / "device"
    os.mkfifo(device)
    reader = subprocess.Popen(["cat", device], stdout=subprocess.PIPE)
    for output in (link, device):
        succeed("report", "-m", lived_run, "-o", output, "--sentences", 0)
    assert link.is_symlink() and page.read_bytes() == reader.communicate()[0]
    assert device.is_fifo()


def test_a_test_set_that_cannot_be_read_is_named(copy: Path, tmp_path: Path) -> None:
    config = copy / "config.yaml"
    config.write_text(config.read_text("utf-8").replace("test.en", "gone.en"), "utf-8")
    page = make_report(copy, tmp_path / "report.html")
    assert "No test set can be scored: " in page and "gone.en: no such file" in page


def test_a_part_of_the_test_set_is_called_a_part(lived_run: Path, tmp_path: Path) -> None:
    page = make_report(lived_run, tmp_path / "report.html", "--sentences", "2")
    assert "the first 2 of 3 sentences" in page and "first 2 of the test set" in page


def test_the_sentences_whose_attention_is_shown_can_be_chosen(
    lived_run: Path, tmp_path: Path
) -> None:
    output = tmp_path / "report.html"
    chosen = ("--sentences", 0, "--sentence", "the cat", "--sentence", "x" * 500)
    result = invoke("report", "-m", lived_run, "-o", output, "--device", "cpu", *chosen)
    data = re.findall(r'id="attention-data">(.*?)</script>', output.read_text("utf-8"))[0]
    assert [sentence["text"] for sentence in json.loads(data)] == ["the cat"]
    assert "attention is shown of 1 of the 2 sentences" in result.stderr


class Proxy(http.server.BaseHTTPRequestHandler):
    """Serves two pages, and is asked for everything that a browser wants from anywhere."""

    pages: dict[str, bytes] = {}
    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        page = self.pages.get(self.path.rpartition("/")[2])
        self.send_response(200 if page else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page or b"")

    def do_CONNECT(self) -> None:
        self.asked.append(self.path)
        self.send_error(503)

    def log_message(self, *_: Any) -> None:
        pass


Browse = Callable[..., dict[str, Any]]
PROBE = """<script>
addEventListener("load", () => setTimeout(() => {
  const found = {
    fetched: performance.getEntriesByType("resource").map((entry) => entry.name),
    title: document.title, width: document.documentElement.scrollWidth, room: innerWidth,
    height: document.documentElement.scrollHeight, results: (() => { SCRIPT })(),
  };
  document.body.append(Object.assign(document.createElement("pre"),
    { id: "probe", textContent: JSON.stringify(found) }));
}, 300));
</script>"""


@pytest.fixture(scope="session")
def browse() -> Iterator[Browse]:
    """Open a page in headless Chromium and run a script in it: what the page did and held."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        pytest.skip(f"no browser to open the page in: none of {', '.join(BROWSERS)} is installed")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_port

    def opened(
        page: str, folder: Path, anchor: str = "", script: str = "", framed: str = ""
    ) -> dict[str, Any]:
        Proxy.pages = {
            "report.html": (page + PROBE.replace("SCRIPT", script)).encode(),
            "framed.html": framed.encode(),
        }
        Proxy.asked.clear()
        result = subprocess.run(
            [
                browser,
                *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
                *("--no-first-run", "--disable-background-networking", "--disable-sync"),
                *("--disable-component-update", f"--user-data-dir={folder / 'browser'}"),
                *(f"--proxy-server=http://127.0.0.1:{port}", "--proxy-bypass-list=<-loopback>"),
                *("--enable-logging=stderr", "--virtual-time-budget=5000"),
                *("--window-size=1400,1000", "--dump-dom"),
                f"http://127.0.0.1:{port}/report.html{anchor}",
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        probe = re.findall(r'<pre id="probe">(.*?)</pre>', result.stdout, flags=re.DOTALL)
        assert probe, result.stderr[-2000:]
        console = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
        asked = [path for path in Proxy.asked if f"127.0.0.1:{port}" in path]
        seen = {"console": console, "asked": asked, "dom": result.stdout}
        return {**json.loads(html.unescape(probe[0])), **seen}

    yield opened
    server.shutdown()
    server.server_close()


def test_a_browser_shows_the_page_without_an_error_or_a_request(
    browse: Browse, page: str, tmp_path: Path
) -> None:
    seen = browse(page, tmp_path)
    assert seen["console"] == [] and seen["fetched"] == []
    assert len(seen["asked"]) == 1
    assert seen["title"] == "a <b> run"
    assert 2000 < seen["height"] < 30_000


def test_a_page_that_does_fetch_would_be_caught(browse: Browse, tmp_path: Path) -> None:
    fetching = "<img src='http://elsewhere.invalid/x.png'><script>console.error('x')</script>"
    seen = browse(f"<body>{fetching}", tmp_path)
    assert "http://elsewhere.invalid/x.png" in seen["fetched"]
    assert any('"x"' in line for line in seen["console"])


@pytest.mark.parametrize("width", [380, 700, 1400])
def test_nothing_is_wider_than_the_window(
    browse: Browse, page: str, tmp_path: Path, width: int
) -> None:
    frame = f'<iframe src="framed.html" style="border:0;width:{width}px;height:900px"></iframe>'
    script = """
    const inside = document.querySelector("iframe").contentDocument.documentElement;
    return [inside.clientWidth, inside.scrollWidth, inside.scrollHeight];
    """
    seen = browse(f"<body>{frame}", tmp_path, script=script, framed=page)
    room, wide, high = seen["results"]
    assert width - 20 <= room <= width and wide <= room
    assert 2000 < high < 30_000


def test_the_address_chooses_the_map(browse: Browse, page: str, tmp_path: Path) -> None:
    shown = {}
    for anchor in ("#cross-1-1", "#cross-1-2", "#encoder-1-0", "#cross-9-1", ""):
        dom = browse(page, tmp_path, anchor)["dom"]
        title = re.findall(r'<h3 id="attention-title">([^<]+)<', dom)[0]
        shown[title] = re.findall(r'fill-opacity="([\d.]+)"', dom)
    assert list(shown) == [
        "Cross (decoder to encoder), layer 1 of 1, head 1",
        "Cross (decoder to encoder), layer 1 of 1, head 2",
        "Encoder, layer 1 of 1, mean of the heads",
        "Cross (decoder to encoder), layer 1 of 1, mean of the heads",
    ]
    assert len({tuple(cells) for cells in shown.values()}) == 4
    assert all(cells for cells in shown.values())


def test_clicks_change_the_map_and_the_address(browse: Browse, page: str, tmp_path: Path) -> None:
    script = """
    const state = () => [document.getElementById("attention-title").textContent, location.hash,
      [...document.querySelectorAll(".map .cell")].map((cell) => cell.getAttribute("fill-opacity")).join()];
    const states = [state()];
    document.getElementById("pick-1-2").click();
    states.push(state());
    [...document.querySelectorAll(".choices button")].find((b) => b.textContent == "Decoder").click();
    states.push(state());
    const cell = document.querySelector(".map .cell");
    cell.dispatchEvent(new PointerEvent("pointerenter"));
    states.push([document.querySelector(".reading").textContent]);
    return states;
    """  # noqa: E501
    start, head, decoder, cell = browse(page, tmp_path, script=script)["results"]
    assert (head[0], head[1]) == (
        "Cross (decoder to encoder), layer 1 of 1, head 2",
        "#cross-1-2-1",
    )
    assert (decoder[0], decoder[1]) == ("Decoder, layer 1 of 1, head 2", "#decoder-1-2-1")
    assert len({start[2], head[2], decoder[2]}) == 3
    assert re.fullmatch(r".+ → <s>: \d\.\d\d", cell[0])


def test_the_pointer_reads_the_curves(browse: Browse, page: str, tmp_path: Path) -> None:
    script = """
    const plot = document.querySelector(".plot"), box = plot.getBoundingClientRect();
    plot.dispatchEvent(new PointerEvent("pointermove", { clientX: box.right }));
    return plot.querySelector(".tip").innerText.split("\\n");
    """
    step, *values = browse(page, tmp_path, script=script)["results"]
    assert step == "step 300"
    assert "training objective: 2.00" in values and "validation cross-entropy: 2.00" in values
