"""Models of the Hugging Face Hub: download of one to import, upload of an export.

The library keeps its cache, token and address where its users expect them: HF_HOME, HF_TOKEN,
HF_ENDPOINT and HF_HUB_OFFLINE, https://huggingface.co/docs/huggingface_hub/package_reference.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nmt.errors import ExchangeError

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def download_model(name: str, revision: str | None, files: Sequence[str]) -> tuple[Path, str]:
    """Return the folder of a model OWNER/NAME, with those of `files` that it has, and its commit.

    Where a model has weights as safetensors, its pickle is not downloaded. A model that the cache
    holds is not downloaded again.

    Raises:
        ExchangeError: there is no such model, or it cannot be downloaded.
    """
    import huggingface_hub
    from huggingface_hub import constants

    with _one_sentence(name, "cannot be downloaded"):
        wanted = list(files)
        if not constants.HF_HUB_OFFLINE:
            held = huggingface_hub.HfApi().list_repo_files(name, revision=revision)
            if "model.safetensors" in held:
                wanted = [file for file in wanted if not file.endswith(".bin")]
        folder = huggingface_hub.snapshot_download(name, revision=revision, allow_patterns=wanted)
    return Path(folder), Path(folder).name


def upload_model(folder: Path, name: str) -> str:
    """Upload the files of an exported folder as the model OWNER/NAME, and return its address.

    Raises:
        ExchangeError: the Hub does not accept them.
    """
    import huggingface_hub

    with _one_sentence(name, "cannot be uploaded; the export itself is complete"):
        api = huggingface_hub.HfApi(library_name="nmt")
        address = api.create_repo(name, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=folder, commit_message="Upload by nmt export")
    return str(address)


@contextmanager
def _one_sentence(name: str, problem: str) -> Iterator[None]:
    """Turn an error of the Hub's library into one sentence that begins with the model's name."""
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as error:
        reason = "its owner must allow you to read it: ask on its page, then set HF_TOKEN"
        raise ExchangeError(f"{name}: {problem}: {reason}") from error
    except errors.RepositoryNotFoundError as error:
        reason = "the Hub has no such model, or it is private: check the name, or set HF_TOKEN"
        raise ExchangeError(f"{name}: {problem}: {reason}") from error
    except errors.RevisionNotFoundError as error:
        raise ExchangeError(f"{name}: {problem}: it has no such --revision") from error
    except errors.LocalEntryNotFoundError as error:
        reason = "it is not in the cache, and the Hub cannot be reached"
        raise ExchangeError(f"{name}: {problem}: {reason}") from error
    except Exception as error:  # the library and what it builds upon raise dozens of kinds
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ExchangeError(f"{name}: {problem}: {reason}") from error
