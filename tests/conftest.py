"""What all tests share: the slow marker, the real data where there is some, a quiet machine."""

import contextlib
import os
import tempfile
from pathlib import Path

import pytest
import torch

from nmt.data.text.lines import read_lines
from nmt.machine.processor import processor_features
from nmt.search import native_search

pytest_plugins = [
    *("tests.marian_models", "tests.stand_in_models", "tests.data.corpora.site"),
    *("tests.serving.page_in_chromium", "tests.ray_machines", "tests.emulated_arm"),
]
PROJECT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the long tests as well")


def pytest_configure(config: pytest.Config) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:  # its workers inherit this
        os.environ["XDG_CACHE_HOME"] = str(cache_of_tests(config))
    if not is_pinned_pytorch():
        config.addinivalue_line("filterwarnings", "default")  # the last line decides
    # More threads gain nothing on tiny tensors, and one thread gives the same sums everywhere.
    torch.set_num_threads(1)
    if "avx2" in processor_features():
        # Without MKL (its choice on AMD) and VNNI, CTranslate2's integer products overflow.
        os.environ.setdefault("CT2_USE_MKL", "1")


def cache_of_tests(config: pytest.Config) -> Path:
    """A folder in place of the user's ~/.cache, which tests never touch.

    Compiled libraries are kept in it from one session to the next.
    """
    if hasattr(config, "cache"):
        with contextlib.suppress(OSError):  # the project may be read-only
            return config.cache.mkdir("xdg").resolve()
    return Path(tempfile.mkdtemp(prefix="nmt-tests-"))


def is_pinned_pytorch() -> bool:
    """Whether PyTorch has the version of scripts/constraints.txt: then warnings are errors."""
    pinned = (PROJECT / "scripts" / "constraints.txt").read_text("utf-8").splitlines()
    return f"torch=={torch.__version__.partition('+')[0]}" in pinned


def pytest_runtest_setup() -> None:
    torch.set_num_threads(1)  # a command that an earlier test ran in this process may use more


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    skip = pytest.mark.skip(reason="a long test; runs with --slow")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def project() -> Path:
    """The root of the project."""
    return PROJECT


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all processes that run the tests, for caches that they may fill together."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def test_data() -> Path:
    """Real parallel text: the folder that NMT_TEST_DATA names, by default ../shared/data."""
    path = Path(os.environ.get("NMT_TEST_DATA") or PROJECT.parent / "shared" / "data")
    if not path.is_dir():
        pytest.skip(f"no real text at {path}; set NMT_TEST_DATA to the folder that holds it")
    return path


@pytest.fixture
def multi30k_lines(test_data: Path) -> tuple[list[str], list[str]]:
    """The first 2,000 English lines of the test and validation text of Multi30k, and the German."""
    english, german = (
        [
            line
            for part in ("test_2016_flickr", "val")
            for line in read_lines(test_data / "multi30k" / f"{part}.{language}.xz")
        ][:2000]
        for language in ("en", "de")
    )
    return english, german


@pytest.fixture
def pytorch_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PyTorch search: which sizes of models the C library takes depends on the processor."""
    monkeypatch.setattr(native_search, "native_library", lambda: None)
