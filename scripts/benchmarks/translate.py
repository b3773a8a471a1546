"""How fast ids are translated on a CPU or a GPU, beside CTranslate2, transformers and Marian.

All engines take the same sentences, sorted by length, with the same weights, beam and penalty
(log P over the length), end a sentence when as many hypotheses have ended as the beam is wide, and
use all cores at their best setting: ours and CTranslate2 in one process or worker of one thread a
core, of several batch sizes the fastest. On a GPU each engine translates everything once before the
clock starts, and ours shows its steps launched kernel by kernel (`bf16-eager`) beside those that
are replayed as graphs. On a CPU, `int8` and `fp32` are the C library where it serves the model, and
`fp32-pytorch` what is used without it.

With `--model` the weights are those of a run, the sentences real ones, and with `--reference` BLEU
is given. Without it they are drawn at random, and every sentence has so many tokens that all
engines write `--target-length`. Texts are cut into pieces before the clock starts. A row's
`latency_ms` is the median of one sentence at a time, on `latency_threads`: one core or all,
whichever is faster.

Each engine runs in a process of its own, in turn, `--rounds` times.
"""

import argparse
import contextlib
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from measuring import apart, report
from train import SIZES

from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import EOS, PAD
from nmt.evaluation.metrics import bleu, bleu_tokenizer
from nmt.exchange.safetensors_folder import export_safetensors
from nmt.inference.prepare import prepare_for_inference
from nmt.machine.device import pick_device
from nmt.machine.memory import tune_memory
from nmt.machine.process_pool import ProcessPool
from nmt.machine.processor import available_cores
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig
from nmt.run.checkpoint_files import Array
from nmt.run.directory import find_run
from nmt.run.model import LoadedModel, load_model
from nmt.search.beam_search import beam_search
from nmt.search.ensemble import restrict_models
from nmt.search.hypothesis import Hypothesis
from nmt.search.native_search import NativeSearch
from nmt.search.shortlist import Shortlist, in_whole_vocabulary
from nmt.search.windows import cut_into_batches

Rows = list[list[int]]
OURS = {
    "cpu": ("fp32", "bf16", "int8", "fp32-pytorch"),
    "cuda": ("fp32", "bf16-eager", "bf16"),
}
CTRANSLATE2 = {"cpu": ("float32", "int8"), "cuda": ("float16", "int8_float16")}
BATCH_TOKENS = {"cpu": (1024, 2048, 4096), "cuda": (4096, 8192, 16384, 32768)}
BATCH_SENTENCES = {"cpu": (32, 64), "cuda": (64, 256, 1024)}
OFFSET = 4
"""without a trained model: tokens that a translation has more than its source"""


class Task:
    """What all engines translate: the model, the sentences in ids, and how long they may become."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        torch.manual_seed(1)
        self.beam = arguments.beam
        self.device = pick_device(arguments.device)
        self.run = arguments.model
        self.limits: dict[str, Any] = {}
        self.tokenizer: Any = None
        if arguments.model:
            loaded = load_model(arguments.model, self.device)
            self.model, self.sizes = loaded.model, loaded.config.model
            self.tokenizer = loaded.tokenizer
            data = loaded.config.data
            self.tokenize = bleu_tokenizer(data.target_language, data.tokenized)
            self.pieces = list(loaded.tokenizer.target.pieces)
            lines = arguments.source.read_text("utf-8").split("\n")[: arguments.sentences]
            self.rows: Rows = loaded.tokenizer.source.encode(lines)
            return
        self.sizes = SIZES[arguments.size]
        words = arguments.vocabulary
        self.pieces = [f"piece{i}" for i in range(words)]
        self.model = Transformer(self.sizes, words, words, PAD).eval().to(self.device)
        length = arguments.target_length - OFFSET
        ids = torch.randint(10, words, (arguments.sentences, length))
        ids[:, -1] = EOS
        self.rows = ids.tolist()
        self.limits = {"min_length": arguments.target_length, "max_length_offset": OFFSET}

    def shortlist(self, candidates: int) -> Shortlist:
        """The run's, with so many candidates of each source token."""
        return Shortlist.load(find_run(Path(self.run)).shortlist, self.tokenizer).first(candidates)

    def settings(self) -> DecodingConfig:
        """Those that all engines understand alike."""
        return DecodingConfig(
            beam_size=self.beam,
            length_normalization="average",
            early_stopping=True,
            **self.limits,
        )


def figures(
    task: Task,
    arguments: argparse.Namespace,
    translate: Callable[[Rows, int], Rows],
    batch_sizes: Mapping[str, Sequence[int]],
    one: Callable[[Rows, int], Rows],
) -> dict[str, Any]:
    """Speed at the best of the device's batch sizes, latency, and BLEU where it can be told.

    `translate` takes rows and a batch size, and returns rows in the same order without EOS; `one`
    translates rows on so many threads.
    """
    best: dict[str, Any] = {"tokens_per_second": 0.0}
    on_gpu = task.device.type == "cuda"
    for size in batch_sizes[task.device.type]:
        if on_gpu:
            translate(task.rows, size)
        start = time.perf_counter()
        found = translate(task.rows, size)
        seconds = time.perf_counter() - start
        # EOS is written as well, but not where the limit cut a sentence off
        tokens = sum(len(row) for row in found) + (0 if task.limits else len(found))
        if tokens / seconds > best["tokens_per_second"]:
            best = {"tokens_per_second": tokens / seconds, "batch": size, "tokens": tokens}
    if task.tokenizer and arguments.reference:
        references = arguments.reference.read_text("utf-8").split("\n")[: arguments.sentences]
        score = bleu(
            task.tokenizer.target.decode(found), references, task.tokenize, confidence=False
        )
        best["bleu"] = score.value
    threads_tried = {1} if on_gpu else {1, available_cores()}
    for threads in threads_tried if arguments.latency_sentences else ():
        one(task.rows[:1], threads)
        waits = []
        for row in task.rows[: arguments.latency_sentences]:
            start = time.perf_counter()
            one([row], threads)
            waits.append(1000 * (time.perf_counter() - start))
        median = statistics.median(waits)
        if median < best.get("latency_ms", math.inf):
            best |= {"latency_ms": median, "latency_threads": threads}
    return best


def among_shortlist(
    shortlist: Shortlist,
    batch: Rows,
    among: Callable[[Rows, Array], list[list[Hypothesis]]],
) -> list[list[Hypothesis]]:
    """Search among the target ids of a shortlist, as `Searcher` does."""
    target_ids = shortlist.target_ids(batch)
    return in_whole_vocabulary(among(batch, target_ids), target_ids)


def nmt(arguments: argparse.Namespace, kind: str) -> dict[str, Any]:
    """This toolkit's own search, on a CPU in a process a core."""
    task = Task(arguments)
    tune_memory()
    torch.set_num_threads(1)
    precision, _, variant = kind.partition("-")
    settings = task.settings()
    shortlist = task.shortlist(arguments.shortlist) if arguments.shortlist else None
    config: Any = SimpleNamespace(model=task.sizes)
    loaded = LoadedModel(config, task.tokenizer, task.model, Path())
    native = None if variant else NativeSearch.build(loaded, precision)
    model = task.model
    if native is None:
        model = prepare_for_inference(task.model, precision, graphs=variant != "eager")

    def among(batch: Rows, target_ids: Array | None) -> list[list[Hypothesis]]:
        if native:
            part = native if target_ids is None else native.restrict_vocabulary(target_ids)
            return part.search(native.encode(batch), settings, 1)
        part_of_model = model
        if target_ids is not None:
            part_of_model = restrict_models(model, torch.from_numpy(target_ids))
        return beam_search(part_of_model, collate_source(batch).to(task.device), settings)

    def search(batch: Rows) -> Rows:
        found = among_shortlist(shortlist, batch, among) if shortlist else among(batch, None)
        return [list(hypotheses[0].tokens) for hypotheses in found]

    def one(rows: Rows, threads: int) -> Rows:
        torch.set_num_threads(threads)
        return search(rows)

    def in_order(search_all: Callable[[list[Rows]], Iterable[Rows]]) -> dict[str, Any]:
        def translate(rows: Rows, batch_tokens: int) -> Rows:
            parts = list(
                cut_into_batches(range(len(rows)), [len(row) for row in rows], batch_tokens)
            )
            found = search_all([[rows[i] for i in part] for part in parts])
            return _in_order(parts, found, len(rows))

        return figures(task, arguments, translate, BATCH_TOKENS, one)

    search(task.rows[:2])
    if task.device.type == "cuda":
        return in_order(lambda parts: map(search, parts))
    with contextlib.closing(ProcessPool(search, available_cores())) as workers:
        list(workers.map([task.rows[:2]] * 2 * available_cores()))
        return in_order(workers.map)


def ctranslate2(arguments: argparse.Namespace, kind: str) -> dict[str, Any]:
    """CTranslate2 with the same weights, in as many workers of one thread as there are cores."""
    from ctranslate2 import Translator

    from nmt.exchange.ctranslate2 import write_model

    task = Task(arguments)
    settings = task.settings()
    cores = available_cores() if task.device.type == "cpu" else 1
    index = {piece: i for i, piece in enumerate(task.pieces)}
    with tempfile.TemporaryDirectory() as folder:
        pieces = (task.pieces, task.pieces)
        quantization: Any = None if kind == "float32" else kind
        write_model(task.model.cpu(), task.sizes, pieces, Path(folder), quantization)
        workers, *singles = (
            Translator(
                folder,
                device=task.device.type,
                compute_type=kind,
                inter_threads=count,
                intra_threads=threads,
            )
            for count, threads in ((cores, 1), (1, 1), (1, cores))
        )

    def with_translator(translator: Any) -> Callable[[Rows, int], Rows]:
        def translate(rows: Rows, batch: int) -> Rows:
            longest = max(map(len, rows)) + settings.max_length_offset
            found = translator.translate_batch(
                [[task.pieces[i] for i in row[:-1]] for row in rows],  # it adds EOS
                beam_size=settings.beam_size,
                length_penalty=1.0,
                max_batch_size=batch,
                min_decoding_length=settings.min_length,
                max_decoding_length=longest,
            )
            return [[index[piece] for piece in result.hypotheses[0]] for result in found]

        return translate

    translate = with_translator(workers)
    on_threads = dict(zip((1, cores), map(with_translator, singles), strict=True))
    translate(task.rows[: 2 * cores], 2)
    return figures(
        task,
        arguments,
        translate,
        BATCH_SENTENCES,
        lambda rows, threads: on_threads[threads](rows, 1),
    )


def huggingface(arguments: argparse.Namespace, precision: str) -> dict[str, Any]:
    """`generate` of transformers: of the run, or of a MarianMTModel with weights of its own."""
    from marian_model import marian_model
    from transformers import AutoModelForSeq2SeqLM

    from nmt.exchange.huggingface_export import export_huggingface

    task = Task(arguments)
    sizes, settings = task.sizes, task.settings()
    torch.set_num_threads(available_cores())
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model: Any
    if task.run:
        with tempfile.TemporaryDirectory() as name:
            folder = with_our_ids(task.run, Path(name), export_huggingface)
            model = AutoModelForSeq2SeqLM.from_pretrained(folder)
        model.generation_config.max_length = None  # a limit of tokens is given instead
    else:
        model = marian_model(sizes, len(task.pieces))
    model.eval().to(task.device, dtype)

    def translate(rows: Rows, batch: int) -> Rows:
        parts = list(cut_into_batches(range(len(rows)), [1] * len(rows), 16 * batch))
        found = []
        for part in parts:
            source = collate_source([rows[i] for i in part]).to(task.device)
            output = model.generate(
                input_ids=source,
                attention_mask=(source != PAD).long(),
                num_beams=settings.beam_size,
                length_penalty=1.0,
                min_new_tokens=settings.min_length,
                max_new_tokens=source.shape[1] + settings.max_length_offset,
                do_sample=False,
                early_stopping=True,
            )
            found.append([[i for i in row[1:] if i not in (PAD, EOS)] for row in output.tolist()])
        return _in_order(parts, found, len(rows))

    def one(rows: Rows, threads: int) -> Rows:
        torch.set_num_threads(threads)
        return translate(rows, 1)

    translate(task.rows[:2], 2)
    return figures(task, arguments, translate, BATCH_SENTENCES, one)


def marian(arguments: argparse.Namespace, precision: str) -> dict[str, Any]:
    """Marian itself, as the package pymarian contains it; its time includes cutting into pieces."""
    from pymarian import Translator

    from nmt.exchange.marian import export_marian

    task = Task(arguments)
    texts = task.tokenizer.source.decode(task.rows)
    text_of = {tuple(row): text for row, text in zip(task.rows, texts, strict=True)}
    with tempfile.TemporaryDirectory() as name:
        folder = with_our_ids(task.run, Path(name), export_marian)
        common = (
            f"--models {folder}/model.npz --vocabs {folder}/vocab.spm {folder}/vocab.spm "
            f"--beam-size {task.beam} --normalize 1 --maxi-batch 100 --maxi-batch-sort src "
            "--max-length 1000 --log-level error --quiet-translation"
        )
        translators = {
            (threads, batch): Translator(f"{common} --cpu-threads {threads} --mini-batch {batch}")
            for threads, batch in {(available_cores(), n) for n in BATCH_SENTENCES["cpu"]}
            | {(1, 1), (available_cores(), 1)}
        }

    def on_threads(rows: Rows, threads: int, batch: int) -> Rows:
        found = translators[threads, batch].translate([text_of[tuple(row)] for row in rows])
        return [row[:-1] for row in task.tokenizer.target.encode(found)]

    on_threads(task.rows[:2], 1, 1)
    return figures(
        task,
        arguments,
        lambda rows, batch: on_threads(rows, available_cores(), batch),
        BATCH_SENTENCES,
        lambda rows, threads: on_threads(rows, threads, 1),
    )


def with_our_ids(run: str, folder: Path, export: Callable[[LoadedModel, Path], None]) -> Path:
    """Export a run so that its rows are our ids, even if it was imported in another order."""
    (plain := folder / "plain").mkdir()
    (exported := folder / "exported").mkdir()
    export_safetensors(load_model(run, torch.device("cpu")), plain)
    export(load_model(plain, torch.device("cpu")), exported)
    return exported


def _in_order(parts: Sequence[Sequence[int]], found: Any, count: int) -> Rows:
    rows: Rows = [[] for _ in range(count)]
    for part, batch in zip(parts, found, strict=True):
        for i, row in zip(part, batch, strict=True):
            rows[i] = row
    return rows


def make_parser() -> argparse.ArgumentParser:
    """The options of this benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", help="run directory or checkpoint; without it random weights")
    parser.add_argument("--source", type=Path, help="sentences for --model, one a line")
    parser.add_argument("--reference", type=Path, help="their translations")
    parser.add_argument("--size", choices=SIZES, default="base", help="without --model")
    parser.add_argument("--vocabulary", type=int, default=32_000, help="without --model")
    parser.add_argument("--target-length", type=int, default=28, help="without --model")
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--latency-sentences", type=int, default=20)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--precision", nargs="+", help=f"of ours: {OURS}")
    parser.add_argument(
        "--shortlist", type=int, metavar="N", help="with --model: ours with N candidates a token"
    )
    parser.add_argument("--rounds", type=int, default=1, help="times that each engine runs")
    parser.add_argument(
        "--against",
        choices=["ctranslate2", "huggingface", "marian"],
        nargs="+",
        default=[],
        help="rivals; marian only with --model",
    )
    return parser


def main() -> None:
    """Measure the engines in turn."""
    parser = make_parser()
    arguments = parser.parse_args()
    if arguments.model and not arguments.source:
        parser.error("--model needs --source: the sentences to translate")
    if arguments.shortlist and not arguments.model:
        parser.error("--shortlist needs --model: a run that `nmt shortlist` has learnt one for")
    device = pick_device(arguments.device).type
    if unknown := set(arguments.precision or ()) - set(OURS[device]):
        parser.error(
            f"--precision {unknown.pop()}: on this device one of {', '.join(OURS[device])}"
        )
    rivals: list[tuple[Callable[..., dict[str, Any]], str]] = []
    if "ctranslate2" in arguments.against:
        rivals += [(ctranslate2, kind) for kind in CTRANSLATE2[device]]
    if "huggingface" in arguments.against:
        rivals += [(huggingface, "fp32"), (huggingface, "bf16")]
    if "marian" in arguments.against:
        if not arguments.model:
            parser.error("Marian is measured with --model")
        rivals.append((marian, "fp32"))
    engines = [(nmt, kind) for kind in arguments.precision or OURS[device]] + rivals
    what = arguments.model or arguments.size
    for number in range(arguments.rounds):
        for engine, kind in engines:
            measured = apart(engine, arguments, kind)
            name = {"engine": engine.__name__, "kind": kind, "round": number}
            report("translate", model=what, device=device, **name, **measured)


if __name__ == "__main__":
    main()
