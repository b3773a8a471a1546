"""`nmt serve`: translations over HTTP, for programs and on a page."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options.groups import with_option_groups
from nmt.errors import ConfigError, MissingExtraError


@dataclass(frozen=True)
class ServeOptions:
    """What is served, and where; None keeps what the file of --config says."""

    models: Annotated[list[str] | None, typer.Option("--model", "-m", metavar="RUN")] = None
    """Run directory or checkpoint; may be given several times, for several pairs of languages."""
    host: str | None = None
    """The address to listen at.  [default: 127.0.0.1]"""
    port: Annotated[int | None, typer.Option(min=0, max=65535)] = None
    """The port to listen at.  [default: 5000]"""
    memories: Annotated[list[str] | None, typer.Option("--memory", metavar="NAME=FILE")] = None
    """A translation memory, and the name by which requests ask for it; may be given several
    times."""
    pivot: Annotated[bool | None, typer.Option("--pivot")] = None
    """Translate a pair that no model has through a third language, as de -> en -> fr."""
    workers: Annotated[int | None, typer.Option(metavar="N", min=1)] = None
    """Processes that translate.  [default: 1, the server itself, with a thread for each core]"""
    keys: Annotated[str | None, typer.Option(metavar="FILE")] = None
    """The file of API keys; with it, only those who have a key may translate."""


@with_option_groups
def serve(
    options: ServeOptions,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="serve.yaml; see nmt/serving/README.md for its keys."),
    ] = None,
    add_key: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Make an API key, print it, and exit; needs --keys."),
    ] = None,
) -> None:
    """Serve translations over HTTP, to programs and on a page.

    Programs ask by LibreTranslate's API or by our own.
    """
    try:
        from nmt.serving import access, http_server
        from nmt.serving.settings import load_settings
    except ModuleNotFoundError as error:
        raise MissingExtraError("nmt serve", "serve") from error
    if add_key is not None:
        if options.keys is None:
            raise ConfigError("--add-key writes into the file of keys; name it with --keys FILE")
        typer.echo(access.add_key(Path(options.keys), add_key))
        return
    memories = options.memories and dict(map(_name_and_file, options.memories))
    http_server.serve(load_settings(config, {**asdict(options), "memories": memories}))


def _name_and_file(memory: str) -> tuple[str, str]:
    """Return the two sides of NAME=FILE; raise a ConfigError if one is missing."""
    name, _, file = memory.partition("=")
    if name and file:
        return name, file
    raise ConfigError(f"--memory is {memory!r}, expected NAME=FILE, as --memory laws=laws.memory")
