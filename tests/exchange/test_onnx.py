"""The exported graphs compute what our model computes, and translate as our greedy search does."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
import torch

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.errors import ExchangeError, MissingExtraError
from nmt.exchange import onnx as exporter
from nmt.exchange.onnx import export_onnx, translate_with_onnxruntime
from nmt.recipe.config import TokenizerConfig
from nmt.run.model import LoadedModel
from tests.exchange.exported_onnx import run_of
from tests.serving.page_in_chromium import OPTIONS

runtime: Any = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("tokenizers")

TEXTS = ["a small dog", "", "ein kleiner Hund </s> 123 .", "dog", "Hund Hund Hund", "ü 世 a"]
LONGEST = 12


@pytest.fixture(scope="module")
def loaded(byte_tokenizer: Tokenizer) -> LoadedModel:
    return run_of(byte_tokenizer)


@pytest.fixture(scope="module")
def folder(loaded: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("onnx")
    export_onnx(loaded, path)
    return path


def check_greedy(loaded: LoadedModel, folder: Path) -> None:
    """Each token is our model's most probable one after those before it; log P is their sum."""
    sums = set()
    for text, found in zip(TEXTS, translate_with_onnxruntime(folder, TEXTS), strict=True):
        tokens = [loaded.tokenizer.target.pieces.index(piece) for piece in found.pieces]
        tokens += [EOS] * (len(tokens) < LONGEST)
        source = torch.tensor(loaded.tokenizer.source.encode([text]))
        with torch.no_grad():
            logits = loaded.model(source, torch.tensor([[BOS, *tokens[:-1]]]))[0].double()
        log_p = logits.log_softmax(-1)
        assert sum(log_p[i, t].item() for i, t in enumerate(tokens)) == pytest.approx(
            found.log_p, abs=1e-4
        )
        log_p[:, [PAD, BOS]] = -torch.inf
        assert log_p.argmax(1).tolist() == tokens
        sums.add(round(found.log_p, 3))
    assert len(sums) == len(TEXTS)  # the source matters


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm": "pre", "activation": "gelu", "embeddings": "target"},
        {"activation": "swish", "embeddings": "separate", "layer_norm_epsilon": 0.03},
        {"norm": "pre", "encoder_layers": 3, "decoder_layers": 1, "heads": 2},
        {"output_bias": True, "positions": "sines_first", "start_embedding": "zero"},
    ],
    ids=str,
)
def test_onnxruntime_translates_every_architecture_as_our_model_does(
    byte_tokenizer: Tokenizer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
) -> None:
    monkeypatch.setattr(exporter, "MAX_TRANSLATION", LONGEST)
    loaded = run_of(byte_tokenizer, **settings)
    before = {name: tensor.clone() for name, tensor in loaded.model.state_dict().items()}
    export_onnx(loaded, tmp_path)
    check_greedy(loaded, tmp_path)
    after = loaded.model.state_dict()
    assert all(tensor.equal(after[name]) for name, tensor in before.items())
    assert len(loaded.model.positions.table) == 512


Feeds = dict[str, Any]
Run = Callable[[str, Feeds], dict[str, Any]]


@pytest.fixture
def run_graph(folder: Path) -> Run:
    def run_session(name: str, feeds: Feeds) -> dict[str, Any]:
        session = runtime.InferenceSession(folder / "onnx" / f"{name}.onnx")
        names = [each.name for each in session.get_outputs()]
        asked = {each.name: feeds[each.name] for each in session.get_inputs()}
        return dict(zip(names, session.run(names, asked), strict=True))

    return run_session


def test_the_decoders_with_and_without_past_and_the_merged_one_agree(
    loaded: LoadedModel, run_graph: Run
) -> None:
    source = torch.tensor([[5, 6, 7, EOS], [8, EOS, PAD, PAD]])
    target = torch.tensor([[BOS, 9, 10, 11, 12], [BOS, 6, 6, 7, 8]])
    with torch.no_grad():
        expected = loaded.model(source, target).numpy()
    mask = (source != PAD).long().numpy()
    feeds = {"input_ids": source.numpy(), "attention_mask": mask, "encoder_attention_mask": mask}
    feeds["encoder_hidden_states"] = run_graph("encoder_model", feeds)["last_hidden_state"]
    feeds["input_ids"] = target[:, :3].numpy()
    first = run_graph("decoder_model", feeds)
    np.testing.assert_allclose(first["logits"], expected[:, :3], atol=1e-5)

    past = {name.replace("present", "past_key_values"): x for name, x in first.items()}
    assert past["past_key_values.2.encoder.value"].shape == (2, 4, 4, 4)
    # the programs fill a first cache with no position or with one, which must not matter
    for length in (0, 1):
        empty = {name: x[:, :, :length] * 0 for name, x in past.items() if name != "logits"}
        merged = run_graph(
            "decoder_model_merged", {**feeds, **empty, "use_cache_branch": np.array([False])}
        )
        for name, tensor in first.items():
            np.testing.assert_allclose(merged[name], tensor, atol=1e-5)

    feeds |= {**past, "input_ids": target[:, 3:].numpy(), "use_cache_branch": np.array([True])}
    second = run_graph("decoder_with_past_model", feeds)
    merged = run_graph("decoder_model_merged", feeds)
    np.testing.assert_allclose(second["logits"], expected[:, 3:], atol=1e-5)
    for name, tensor in second.items():
        np.testing.assert_allclose(merged[name], tensor, atol=1e-5)
    assert sorted(set(first) - set(second)) == sorted(name for name in first if "encoder" in name)


def test_int8_graphs_are_near_in_log_p(folder: Path) -> None:
    exact = translate_with_onnxruntime(folder, ["a small dog"])[0]
    rounded = translate_with_onnxruntime(folder, ["a small dog"], quantized=True)[0]
    assert rounded != exact
    assert rounded.log_p == pytest.approx(exact.log_p, rel=0.2)
    assert len(list((folder / "onnx").glob("*_quantized.onnx"))) == 4


def test_the_settings_start_with_bos_and_forbid_it_afterwards(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text("utf-8"))
    generation = json.loads((folder / "generation_config.json").read_text("utf-8"))
    assert config["model_type"] == "marian"
    assert (config["decoder_layers"], config["decoder_attention_heads"]) == (3, 4)
    for settings in (config, generation):
        assert settings["decoder_start_token_id"] == settings["bos_token_id"] == BOS
    assert generation["bad_words_ids"] == [[PAD], [BOS]]


def test_a_model_beyond_the_limit_of_protobuf_is_refused_before_anything_is_written(
    loaded: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporter, "MAX_WEIGHT_BYTES", 10)
    with pytest.raises(ExchangeError, match="GB of weights, but a file of ONNX holds at most"):
        export_onnx(loaded, tmp_path)
    assert not list(tmp_path.iterdir())


def test_two_vocabularies_are_refused_with_the_formats_that_have_them(tmp_path: Path) -> None:
    settings = TokenizerConfig(kind="char", vocabulary_size=12, shared=False)
    tokenizer = learn_vocabulary([SentencePair("abcd", "efgh")], settings)
    with pytest.raises(ExchangeError, match="one tokenizer for a model.*as ctranslate2"):
        export_onnx(run_of(tokenizer, embeddings="separate"), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["onnx", "onnxruntime.quantization"])
def test_a_missing_package_is_an_error_that_names_the_extra(
    loaded: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match="the format onnx needs the extra 'exchange'"):
        export_onnx(loaded, tmp_path)
    assert not list(tmp_path.iterdir())


NODE = """
import { createRequire } from "node:module";
const require = createRequire(process.argv[1] + "/");
const { env, pipeline } = require("@huggingface/transformers");
Object.assign(env, { localModelPath: process.argv[2], allowRemoteModels: false });
const translate = await pipeline("translation", process.argv[3], { dtype: "fp32" });
const texts = JSON.parse(process.argv[4]);
const ids = texts.map((text) => translate.tokenizer.encode(text).map(Number));
const found = [];
for (const text of texts) found.push((await translate(text, { max_new_tokens: 11 }))[0]);
console.log(JSON.stringify([ids, found.map((each) => each.translation_text)]));
"""


def test_transformers_js_translates_as_onnxruntime_does(
    loaded: LoadedModel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = os.environ.get("NMT_NODE_MODULES")
    node = shutil.which("node")
    if not node or not modules:
        pytest.skip(
            "needs Node, and in NMT_NODE_MODULES the node_modules with @huggingface/transformers"
        )
    monkeypatch.setattr(exporter, "MAX_TRANSLATION", 11)
    texts = [text for text in TEXTS if text]
    arguments = [modules, str(folder.parent), folder.name, json.dumps(texts)]
    command = [node, "--input-type=module", "-e", NODE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    ids, found = json.loads(done.stdout)
    assert ids == loaded.tokenizer.source.encode(texts)
    target = loaded.tokenizer.target
    ours = translate_with_onnxruntime(folder, texts)
    assert found == target.decode([[target.pieces.index(p) for p in each.pieces] for each in ours])


PACKAGES = "/node_modules/@huggingface/transformers/dist/", "/node_modules/onnxruntime-web/dist/"


@pytest.mark.slow
def test_the_page_of_an_exported_folder_translates_in_chromium(
    loaded: LoadedModel, folder: Path, tmp_path: Path
) -> None:
    chromium, modules = shutil.which("chromium"), os.environ.get("NMT_NODE_MODULES")
    if not chromium or not modules:
        pytest.skip(
            "needs chromium, and in NMT_NODE_MODULES a folder with @huggingface/transformers"
        )
    site = shutil.copytree(folder, tmp_path / "site")
    (site / "node_modules").symlink_to(modules)
    # the scripts come from this machine, not from the network
    page = re.sub('CDN = ".*"', f'CDN = "{PACKAGES[0]}"', exporter.PAGE.read_text("utf-8"))
    local = f'env.backends.onnx.wasm.wasmPaths = "{PACKAGES[1]}";'
    (site / "index.html").write_text(page.replace("Object", f"{local} Object", 1), "utf-8")
    text = "a small dog"
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    command = [chromium, "--headless", *OPTIONS, "--enable-logging=stderr"]
    command.append(f"--user-data-dir={tmp_path / 'profile'}")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        command.append(f"http://127.0.0.1:{server.server_port}/#{quote(text)}")
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as browser:
            limit = threading.Timer(100, browser.terminate)
            limit.start()
            assert browser.stderr
            log = next(
                (line for line in browser.stderr if "CONSOLE" in line and '\\n"' in line), ""
            )
            limit.cancel()
            browser.terminate()
        server.shutdown()
    pieces = translate_with_onnxruntime(folder, [text], quantized=True)[0].pieces
    target = loaded.tokenizer.target
    (expected,) = target.decode([[target.pieces.index(piece) for piece in pieces]])
    assert json.dumps(expected + "\n", ensure_ascii=False) in log
