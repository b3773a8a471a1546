"""Models of the Hugging Face Hub: download of one to import, upload of an export.

The library keeps its cache, token and address where its users expect them: HF_HOME, HF_TOKEN,
HF_ENDPOINT and HF_HUB_OFFLINE, https://huggingface.co/docs/huggingface_hub/package_reference.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from nmt.errors import ExchangeError

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def download_model(name: str, revision: str | None, files: Sequence[str]) -> tuple[Path, str]:
    """Download those of `files` that the model OWNER/NAME has; return their folder and its commit.

    A name in `files` may be a pattern, such as `model-*.safetensors`.
    Where a model has weights as safetensors, its pickle is not downloaded. A model that the cache
    holds is not downloaded again. `revision` is a commit, branch or tag; None: the newest.

    Raises:
        ExchangeError: there is no such model, or it cannot be downloaded.
    """
    import huggingface_hub
    from huggingface_hub import constants

    with _as_exchange_error(name, "cannot be downloaded"):
        wanted = list(files)
        if not constants.HF_HUB_OFFLINE:  # else the list of files cannot be read
            files_on_hub = huggingface_hub.HfApi().list_repo_files(name, revision=revision)
            safetensors = [pattern for pattern in files if pattern.endswith(".safetensors")]
            if any(fnmatch(file, pattern) for file in files_on_hub for pattern in safetensors):
                wanted = [file for file in wanted if not file.endswith(".bin")]
        folder = huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=wanted)
    commit = Path(folder).name  # the cache has a folder for each commit
    return Path(folder), commit


def upload_model(folder: Path, name: str) -> str:
    """Upload the files of an exported folder as the model OWNER/NAME, and return its address.

    Raises:
        ExchangeError: the Hub does not accept them.
    """
    import huggingface_hub

    with _as_exchange_error(name, "cannot be uploaded; the export itself is complete"):
        api = huggingface_hub.HfApi(library_name="nmt")
        address = api.create_repo(name, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=folder, commit_message="Upload by nmt export")
    return str(address)


@contextmanager
def _as_exchange_error(name: str, problem: str) -> Iterator[None]:
    """Turn an error of the Hub's library into an ExchangeError "NAME: PROBLEM: reason"."""
    from huggingface_hub import errors

    reasons: dict[type[Exception], str] = {  # a GatedRepoError is a RepositoryNotFoundError, too
        errors.GatedRepoError: (
            "its owner must allow you to read it: ask on its page, then set HF_TOKEN"
        ),
        errors.RepositoryNotFoundError: (
            "the Hub has no such model, or it is private: check the name, or set HF_TOKEN"
        ),
        errors.RevisionNotFoundError: "it has no such `revision`",
        errors.LocalEntryNotFoundError: "it is not in the cache, and the Hub cannot be reached",
    }
    try:
        yield
    except Exception as error:  # the library and what it builds upon raise dozens of kinds
        first_line = str(error).strip().partition("\n")[0] or type(error).__name__
        known_reasons = (reason for kind, reason in reasons.items() if isinstance(error, kind))
        reason = next(known_reasons, first_line)
        raise ExchangeError(f"{name}: {problem}: {reason}") from error
