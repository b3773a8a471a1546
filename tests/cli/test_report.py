"""`nmt report`: a page that holds what the run is, and says what it lacks."""

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
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


def test_every_chapter_is_there_and_text_never_becomes_markup(page: str) -> None:
    chapters = re.findall(r'<section id="(\w+)"><h2>', page)
    assert chapters == [
        *("summary", "training", "quality", "translations", "attention", "data", "configuration")
    ]
    assert all(f'href="#{chapter}"' in page for chapter in chapters)
    assert "3 sentences" in page and "The worst sentences" in page and "BLEU" in page
    assert 'id="attention-data"' in page and ">bf16<" in page
    assert "environment.json does not say what the run was trained on" in page
    assert NASTY not in page and html.escape(NASTY, quote=True).split()[0] in page
    assert page.count("<script") == 2  # the attention data and the page's own


def test_the_report_lies_in_the_run_unless_told_otherwise(lived_run: Path) -> None:
    written = lived_run / "report.html"
    command = ("report", "-m", lived_run, "--sentences", 0, "--device", "cpu")
    assert succeed(*command) == f"{written}\n"
    assert "as 0 sentences were asked for" in written.read_text("utf-8")
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
    monkeypatch.setattr("nmt.report.run_report.build_report", None)  # it does not come to that
    page = tmp_path / "file" / "report.html"
    message = fail(NmtError, "report", "-m", lived_run, "-o", page)
    assert f"{page}: cannot be written: Not a directory" in message


@pytest.mark.parametrize("name", ["config.yaml", "metrics.jsonl"])
def test_a_file_of_the_run_is_not_replaced(lived_run: Path, name: str) -> None:
    before = (lived_run / name).read_bytes()
    message = fail(ConfigError, "report", "-m", lived_run, "-o", lived_run / name)
    assert "the same file, which would be replaced" in message
    assert (lived_run / name).read_bytes() == before


def test_a_device_stays_what_it_is(lived_run: Path, tmp_path: Path) -> None:
    device = tmp_path / "device"
    os.mkfifo(device)
    reader = subprocess.Popen(["cat", device], stdout=subprocess.PIPE)
    succeed("report", "-m", lived_run, "-o", device, "--sentences", 0)
    assert b"</html>" in reader.communicate()[0] and device.is_fifo()


def test_a_test_set_that_cannot_be_read_is_named(copy: Path, tmp_path: Path) -> None:
    config = copy / "config.yaml"
    config.write_text(config.read_text("utf-8").replace("test.en", "gone.en"), "utf-8")
    page = make_report(copy, tmp_path / "report.html")
    assert "No test set can be scored: " in page and "gone.en: no such file" in page


def test_sentences_to_score_and_to_draw_can_be_chosen(lived_run: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    chosen = ("--sentences", 2, "--sentence", "the cat", "--sentence", "x" * 500)
    result = invoke("report", "-m", lived_run, "-o", output, "--device", "cpu", *chosen)
    page = output.read_text("utf-8")
    assert "the first 2 of 3 sentences" in page
    data = re.findall(r'id="attention-data">(.*?)</script>', page)[0]
    assert [sentence["text"] for sentence in json.loads(data)] == ["the cat"]
    assert "attention is shown of 1 of the 2 sentences" in result.stderr


Browse = Callable[..., dict[str, Any]]
PROBE = """<script>
addEventListener("load", () => setTimeout(() => {
  const found = {
    fetched: performance.getEntriesByType("resource").map((entry) => entry.name),
    title: document.title, height: document.documentElement.scrollHeight,
    results: (() => { SCRIPT })(),
  };
  document.body.append(Object.assign(document.createElement("pre"),
    { id: "probe", textContent: JSON.stringify(found) }));
}, 300));
</script>"""


@pytest.fixture(scope="session")
def browse(tmp_path_factory: pytest.TempPathFactory) -> Browse:
    """Open a page in headless Chromium and run a script in it: what the page did and held."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"no browser to open the page in: none of {', '.join(BROWSERS)} is installed")

    def opened(page: str, anchor: str = "", script: str = "") -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("browser")
        file = folder / "report.html"
        file.write_text(page + PROBE.replace("SCRIPT", script), "utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        options += [f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr"]
        options += ["--virtual-time-budget=5000", "--window-size=1400,1000", "--dump-dom"]
        command = [browser, *options, f"{file.as_uri()}{anchor}"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        probe = re.findall(r'<pre id="probe">(.*?)</pre>', result.stdout, flags=re.DOTALL)
        assert probe, result.stderr[-2000:]
        console = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
        found: dict[str, Any] = json.loads(html.unescape(probe[0]))
        return {**found, "console": console, "dom": result.stdout}

    return opened


def test_a_browser_shows_the_page_without_an_error_or_a_request(browse: Browse, page: str) -> None:
    seen = browse(page)
    assert seen["console"] == [] and seen["fetched"] == []
    assert seen["title"] == "a <b> run"
    assert 2000 < seen["height"] < 30_000


def test_a_page_that_does_fetch_would_be_caught(browse: Browse) -> None:
    fetching = "<img src='http://elsewhere.invalid/x.png'><script>console.error('x')</script>"
    seen = browse(f"<body>{fetching}")
    assert "http://elsewhere.invalid/x.png" in seen["fetched"]
    assert any('"x"' in line for line in seen["console"])


def test_nothing_is_wider_than_the_window(browse: Browse, page: str) -> None:
    widths = (380, 700, 1400)
    frames = [
        f'<iframe srcdoc="{html.escape(page)}" style="border:0;width:{width}px;height:900px">'
        "</iframe>"
        for width in widths
    ]
    script = """
    const frames = [...document.querySelectorAll("iframe")];
    const pages = frames.map((frame) => frame.contentDocument.documentElement);
    return pages.map((page) => [page.clientWidth, page.scrollWidth, page.scrollHeight]);
    """
    sizes = browse(f"<body>{''.join(frames)}", script=script)["results"]
    for width, (room, wide, high) in zip(widths, sizes, strict=True):
        assert width - 20 <= room <= width and wide <= room
        assert 2000 < high < 30_000


CROSS = "Cross (decoder to encoder), layer 1 of 1"


@pytest.mark.parametrize(
    ("anchor", "title"),
    [
        ("#cross-1-1", f"{CROSS}, head 1"),
        ("#encoder-1-0", "Encoder, layer 1 of 1, mean of the heads"),
        ("#cross-9-1", f"{CROSS}, mean of the heads"),
        ("", f"{CROSS}, mean of the heads"),
    ],
)
def test_the_address_chooses_the_map(browse: Browse, page: str, anchor: str, title: str) -> None:
    assert f'<h3 id="attention-title">{title}<' in browse(page, anchor)["dom"]


def test_clicks_change_the_map_and_the_pointer_reads_figures(browse: Browse, page: str) -> None:
    script = """
    const cells = () => [...document.querySelectorAll(".map .cell")];
    const state = () => [document.getElementById("attention-title").textContent, location.hash,
      cells().map((cell) => cell.getAttribute("fill-opacity")).join()];
    const states = [state()];
    document.getElementById("pick-1-2").click();
    states.push(state());
    const buttons = [...document.querySelectorAll(".choices button")];
    buttons.find((button) => button.textContent == "Decoder").click();
    states.push(state());
    cells()[0].dispatchEvent(new PointerEvent("pointerenter"));
    const plot = document.querySelector(".plot"), box = plot.getBoundingClientRect();
    plot.dispatchEvent(new PointerEvent("pointermove", { clientX: box.right }));
    return [states, document.querySelector(".reading").textContent,
      plot.querySelector(".tip").innerText.split("\\n")];
    """
    states, reading, tip = browse(page, script=script)["results"]
    start, head, decoder = states
    assert head[:2] == [f"{CROSS}, head 2", "#cross-1-2-1"]
    assert decoder[:2] == ["Decoder, layer 1 of 1, head 2", "#decoder-1-2-1"]
    assert len({start[2], head[2], decoder[2]}) == 3
    assert re.fullmatch(r".+ → <s>: \d\.\d\d", reading)
    assert tip[0] == "step 300"
    assert "training objective: 2.00" in tip and "validation cross-entropy: 2.00" in tip
