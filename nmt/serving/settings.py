"""Settings of the server, from the options of `nmt serve` and from serve.yaml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from nmt.recipe.config import Section
from nmt.recipe.config_file import parse_section, read_yaml_file

FilePath = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=86400)]


class ServerSettings(Section):
    """What is served, how, and to whom; each key can stand in serve.yaml."""

    models: list[FilePath] = Field(min_length=1)
    """run directories or checkpoints; their configurations name the languages"""
    memories: dict[Annotated[str, Field(pattern=r"^[\w.-]{1,64}$")], FilePath] = {}
    """translation memories, {name: file}; without `keys`, all requests may use them"""
    pivot: bool = False
    """whether a missing pair is translated through a third language, as de -> en -> fr"""
    host: str = "127.0.0.1"
    """the address to listen at; 0.0.0.0 is every address of this machine"""
    port: int = Field(5000, ge=0, le=65535)
    """the port to listen at; 0 is any free one"""
    workers: int = Field(1, ge=1, le=256)
    """processes that translate; 1: the server itself translates, with a thread for each core"""
    threads: int | None = Field(None, ge=1, le=256)
    """threads of the server itself that translate on a CPU; null: one for each core"""

    checkpoint: str = "best"
    """which weights of a run: best, last, averaged, moving-average or step-N"""
    device: str = "auto"
    """where to compute: auto (a GPU of CUDA if there is one), cpu, cuda, cuda:1"""
    precision: Literal["auto", "fp32", "bf16", "int8"] = "auto"
    """the number format, as `nmt translate --precision`"""
    beam_size: int | None = Field(None, ge=1)
    """the beam of all models, which is also the most alternatives of a text; null: each run's"""
    shortlist: int | None = Field(None, ge=1, le=200)
    """candidates of each source token, as `nmt translate --shortlist`; null: no shortlist"""
    memory_gigabytes: float | None = Field(None, gt=0)
    """what loaded models may take; the one unused for longest is dropped; null: half of all"""
    preload_pytorch: bool = True
    """whether models are loaded for PyTorch as well, for what the C library does not
    compute; false: when it is first asked for, which then takes seconds"""
    reload_seconds: Seconds = 5.0
    """how often the runs are looked at for new weights, and the file of keys for new keys"""

    wait_milliseconds: float = Field(3.0, ge=0, le=1000)
    """how long a segment waits for others to join it while something else is translated"""
    batch_seconds: Seconds = 0.5
    """about how long a batch may take; it bounds how long a short request waits for a long one"""
    search_seconds: Seconds = 60.0
    """longest time in which a sentence is translated; a request with a slower one is refused"""
    queue_segments: int = Field(50_000, ge=1)
    """most segments that wait at once; a request that exceeds it is refused with 503"""
    cache_segments: int = Field(20_000, ge=0)
    """number of finished segments that are kept, to be answered at once; 0: none"""

    body_bytes: int = Field(2_000_000, ge=1000)
    """largest body of a request, files excepted"""
    file_bytes: int = Field(10_000_000, ge=1000)
    """largest body of a request that uploads a file"""
    bodies_bytes: int = Field(256_000_000, ge=1000)
    """bodies of all requests together, most of which wait on disk; others are refused with 503"""
    text_characters: int = Field(50_000, ge=1)
    """most characters of all texts of a request, files excepted"""
    file_characters: int = Field(1_000_000, ge=1)
    """most characters of the texts of a file"""
    unpacked_bytes: int = Field(50_000_000, ge=1000)
    """largest size of a file that is an archive, such as one of Word, once it is unpacked"""
    file_tags: int = Field(500_000, ge=1000)
    """most tags of a document, each of which takes up to a kilobyte of memory"""
    texts: int = Field(1000, ge=1)
    """most texts of a request"""
    documents: int = Field(100, ge=1)
    """most documents of /v1/documents that wait or are translated; others are refused with 503"""
    document_seconds: Seconds = 3600.0
    """longest time in which a document of /v1/documents is translated"""

    body_seconds: Seconds = 30.0
    """longest time that a client may take to send a request, or to take its answer"""
    idle_seconds: Seconds = 75.0
    """how long a connection without a request stays open"""
    request_seconds: Seconds = 600.0
    """longest time of a request; then it is refused with 503"""
    drain_seconds: Seconds = 30.0
    """how long SIGTERM waits for the requests that are being answered"""

    keys: FilePath | None = None
    """the file of API keys, written by `nmt serve --add-key`; null: everybody may translate"""
    requests_per_minute: int | None = Field(None, ge=1)
    """limit of each client without a key of its own limit; null: none"""
    characters_per_day: int | None = Field(None, ge=1)
    """limit of each client without a key of its own limit; null: none"""
    files: FilePath | None = None
    """the folder of translated files; several servers may share one; null: one of its own"""
    files_bytes: int = Field(1_000_000_000, ge=1000)
    """translated files of all clients together; others are refused with 503 until some are old"""
    public_metrics: bool = False
    """whether /metrics and /v1/models are answered without a key, if there are keys"""
    cors_origins: list[str] = []
    """web sites whose pages may call this server, as https://example.org; "*" is every site"""
    proxies: str = "127.0.0.1"
    """addresses of proxies that are believed when they name the client's address, the scheme, the
    host and the path prefix (X-Forwarded-For, -Proto, -Host, -Prefix)"""
    root_path: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._~-]+)*/?$")] = ""
    """the path below which clients find the server, as /nmt; a proxy may remove it or not"""
    hosts: list[str] = []
    """names by which clients may call the server, as translate.example.org; addresses in answers
    name no other host; "*" allows any"""
    protect: bool = False
    """whether addresses and placeholders stay as they are where a request does not say `protect`"""
    log_texts: bool = False
    """whether the log has the texts of requests"""


def load_settings(path: Path | None, options: Mapping[str, object]) -> ServerSettings:
    """Return the settings of a file (None: no file); `options` that are not None replace its own.

    Raises:
        ConfigError: the file cannot be read or has mistakes; the message has line and key.
    """
    text = read_yaml_file(path) if path else ""
    given = {name: value for name, value in options.items() if value is not None}
    return parse_section(ServerSettings, text, str(path or "nmt serve"), given)
