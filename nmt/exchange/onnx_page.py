"""A page that translates in the browser, with transformers.js and an exported ONNX model."""

import base64
from pathlib import Path

from nmt.errors import ExchangeError
from nmt.files import write_atomically

# what transformers.js reads of a model that it runs in int8
MODEL_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "onnx/encoder_model_quantized.onnx",
    "onnx/decoder_model_merged_quantized.onnx",
)
# transformers.js, and the engine that it runs: the script of onnxruntime-web and its WebAssembly
LIBRARY_FILES = (
    "@huggingface/transformers/dist/transformers.min.js",
    "onnxruntime-web/dist/ort-wasm-simd-threaded.mjs",
    "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm",
)


def page() -> str:
    """Return the page, for a folder of an exported model: it gets transformers.js from a CDN."""
    return Path(__file__).with_name("onnx_page.html").read_text("utf-8")


def write_single_page(folder: Path, node_modules: Path, path: Path) -> None:
    """Write a page that holds the int8 model of a folder, and transformers.js: it needs no network.

    `node_modules` is the folder in which `npm install @huggingface/transformers` puts packages.

    Raises:
        ExchangeError: a file of the library or the model is missing.
        OSError: the page cannot be written.
    """
    files = {name: folder / name for name in MODEL_FILES}
    files |= {Path(name).name: node_modules / name for name in LIBRARY_FILES}
    embedded = []
    for name, file in files.items():
        if not file.is_file():
            raise ExchangeError(
                f"{file}: missing; a page needs an exported ONNX model and the folder node_modules "
                "in which you ran: npm install @huggingface/transformers"
            )
        content = base64.b64encode(file.read_bytes()).decode("ascii")
        embedded.append(f'<script type="text/plain" id="{name}">{content}</script>\n')
    script_tag = '<script type="module">'  # the script finds each file by its id
    before, script = page().split(script_tag)
    write_atomically(path, "".join([before, *embedded, script_tag, script]))
