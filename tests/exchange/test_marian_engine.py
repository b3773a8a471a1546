"""Marian itself, from the package pymarian, translates a folder as its sources say."""

import importlib.util
from pathlib import Path

import pytest
import torch

from nmt.data.tokens.vocabulary import split_with
from nmt.errors import ExchangeError, MissingExtraError
from nmt.exchange.engine import MAX_TRANSLATION
from nmt.exchange.imported import write_run
from nmt.exchange.marian import import_marian
from nmt.exchange.marian_engine import translate_with_marian
from nmt.exchange.marian_files import read_npz, write_npz
from nmt.exchange.verify import EXACT, verify_translations
from nmt.recipe import strict_yaml
from nmt.run.model import load_model
from tests.exchange.marian_packages import TEXT, MarianReference, write_package


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("a folder with spaces")
    write_package(folder, yaml_vocabulary=False)
    return folder


@pytest.mark.parametrize("yaml_vocabulary", [False, True])
def test_marian_finds_the_most_probable_pieces_and_their_log_p(
    tmp_path: Path, yaml_vocabulary: bool
) -> None:
    pytest.importorskip("pymarian")
    write_package(tmp_path, yaml_vocabulary)
    options, weights = read_npz(tmp_path / "model.npz")
    parsed, _ = strict_yaml.parse(options.rstrip(b"\0").decode(), "model")
    reference = MarianReference(weights, parsed)
    vocabulary = import_marian(tmp_path)[0].vocabularies[0]
    pieces_of_texts = split_with(vocabulary.segmentation, TEXT[:3])
    translations = translate_with_marian(tmp_path, TEXT[:3])
    for text, (pieces, log_p) in zip(pieces_of_texts, translations, strict=True):
        is_cut = len(pieces) >= MAX_TRANSLATION - 1
        source, target = (
            [vocabulary.rows[piece] for piece in each] + [vocabulary.rows["</s>"]] * has_end
            for each, has_end in ((text, True), (pieces, not is_cut))
        )
        scores = reference.logits(source, target).log_softmax(1)
        assert scores.argmax(1).tolist() == target
        if not is_cut:
            total = scores.gather(1, torch.tensor(target)[:, None]).sum().item()
            assert log_p == pytest.approx(total, abs=1e-3)


def test_a_tag_at_the_start_of_a_text_is_one_piece(tmp_path: Path) -> None:
    pytest.importorskip("pymarian")
    (tmp_path / "package").mkdir()
    write_package(tmp_path / "package", yaml_vocabulary=True)
    write_run(import_marian(tmp_path / "package")[0], tmp_path / "run")
    loaded = load_model(tmp_path / "run", torch.device("cpu"))
    texts = [f">>deu<< {TEXT[0]}", f">>deu<<{TEXT[1]}", f">>xyz<< {TEXT[2]}"]
    verify_translations(loaded, texts, translate_with_marian(tmp_path / "package", texts), EXACT)


def test_a_model_that_marian_does_not_accept_is_one_sentence(package: Path, tmp_path: Path) -> None:
    pytest.importorskip("pymarian")
    for path in package.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    _, weights = read_npz(package / "model.npz")
    (tmp_path / "model.npz").write_bytes(write_npz(b"type: s2s-unknown\0", weights))
    with pytest.raises(ExchangeError, match="Marian cannot use the model: Unknown model type: s2s"):
        translate_with_marian(tmp_path, TEXT[:1])


@pytest.mark.parametrize(
    ("version", "error", "message"),
    [
        ((3, 12), MissingExtraError, "verifying a model with Marian needs the extra"),
        ((3, 13), ExchangeError, "Python 3.12 and older only; use such a Python, or --no-verify"),
    ],
)
def test_without_marian_a_sentence_says_what_helps(
    version: tuple[int, int],
    error: type[Exception],
    message: str,
    package: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("nmt.exchange.marian_engine.sys.version_info", version)
    with pytest.raises(error, match=message):
        translate_with_marian(package, TEXT[:1])
