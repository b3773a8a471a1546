"""The page translates in a browser, opened from a disk, with nothing but what it holds."""

import base64
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path
from urllib.parse import quote

import pytest

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ExchangeError
from nmt.exchange.onnx import export_onnx, translate_with_onnxruntime
from nmt.exchange.onnx_page import LIBRARY_FILES, write_single_page
from nmt.exchange.onnx_page import page as page_of_folder
from tests.exchange.exported_onnx import run_of
from tests.serving.page_in_chromium import OPTIONS

for package in ("onnx", "onnxruntime", "tokenizers"):
    pytest.importorskip(package)


@pytest.fixture(scope="module")
def folder(byte_tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("onnx")
    export_onnx(run_of(byte_tokenizer), path)
    return path


def test_a_single_page_holds_the_model_and_the_library(folder: Path, tmp_path: Path) -> None:
    for name in LIBRARY_FILES:
        file = tmp_path / "node_modules" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name, "utf-8")
    page = tmp_path / "page.html"
    write_single_page(folder, tmp_path / "node_modules", page)
    text = page.read_text("utf-8")
    for content in ((folder / "tokenizer.json").read_bytes(), LIBRARY_FILES[0].encode()):
        assert base64.b64encode(content).decode() in text
    assert text.index('id="config.json"') < text.index("import(")
    assert (folder / "index.html").read_text("utf-8") == page_of_folder()


def test_a_page_without_the_library_says_how_to_get_it(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match="transformers.min.js: missing.*npm install"):
        write_single_page(folder, tmp_path, tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


CHROMIUM = ["--headless", *OPTIONS, "--enable-logging=stderr"]


@pytest.mark.slow
def test_chromium_translates_in_a_page_without_a_server(
    byte_tokenizer: Tokenizer, folder: Path, tmp_path: Path
) -> None:
    chromium, modules = shutil.which("chromium"), os.environ.get("NMT_NODE_MODULES")
    if not chromium or not modules:
        pytest.skip(
            "needs chromium, and in NMT_NODE_MODULES a folder with @huggingface/transformers"
        )
    page, text = tmp_path / "page.html", "a small dog"
    write_single_page(folder, Path(modules), page)
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [chromium, *CHROMIUM, profile, f"{page.as_uri()}#{quote(text)}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as browser:
        limit = threading.Timer(100, browser.terminate)
        limit.start()
        assert browser.stderr
        log = next((line for line in browser.stderr if "CONSOLE" in line and '\\n"' in line), "")
        limit.cancel()
        browser.terminate()
    pieces = translate_with_onnxruntime(folder, [text], quantized=True)[0].pieces
    target = byte_tokenizer.target
    (expected,) = target.decode([[target.pieces.index(piece) for piece in pieces]])
    assert json.dumps(expected + "\n", ensure_ascii=False) in log
