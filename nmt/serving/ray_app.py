"""The application on Ray Serve: replicas on the machines of a cluster, and more of them under load.

Each replica is a process that loads the models itself and answers as `nmt serve` does. It is built
from the same settings; Ray's proxies listen, spread the requests over the replicas, and replace one
that has died.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field
from ray import serve

from nmt.errors import ConfigError
from nmt.machine.memory import tune_memory
from nmt.machine.processor import is_cpu
from nmt.recipe import strict_yaml
from nmt.recipe.config import Section
from nmt.recipe.config_file import parse_section, replace_settings
from nmt.serving.application import build_application
from nmt.serving.operations import log_to_stderr
from nmt.serving.server import Server
from nmt.serving.settings import ServerSettings, load_settings

BUILDER = "nmt.serving.ray_app:build_app"
MAX_ONGOING_REQUESTS = 1000
"""requests that a replica has at once: many, because their segments are translated together"""


class ReplicaOptions(Section):
    """How many replicas there are; `build_app` takes these keys beside those of serve.yaml."""

    replicas: int = Field(1, ge=1)
    """replicas at the beginning, and the fewest of them"""
    max_replicas: int | None = Field(None, ge=1)
    """the most replicas; Ray starts and ends them as the load asks for; null: their number stays"""
    requests_per_replica: float = Field(16.0, gt=0)
    """unfinished requests per replica above which Ray starts another one"""


def build_app(arguments: Mapping[str, object]) -> serve.Application:
    """Return the application for `serve run`, which gives its arguments KEY=VALUE as strings.

    Keys are `config`, a serve.yaml; `model`, a run or a list of them; all keys of serve.yaml; and
    those of `ReplicaOptions`. A value is read as YAML. The address and the port are those of Ray.

    Raises:
        ConfigError: a key or value is not allowed, or replicas have no common folder of files.
    """
    values = dict(arguments)
    for name, value in arguments.items():
        if isinstance(value, str):
            values[name], _lines = strict_yaml.parse(value, f"{BUILDER} {name}")
    # the keys of `ReplicaOptions` are taken out of `values`; the others are those of the server
    of_replicas = {name: values.pop(name) for name in ReplicaOptions.model_fields if name in values}
    options = parse_section(ReplicaOptions, "", BUILDER, of_replicas)
    settings = _read_settings(values)
    is_one = options.replicas == 1 and options.max_replicas in (1, None)
    if settings.files is None and not is_one:
        raise ConfigError(
            f"{BUILDER}: a translated file may be fetched from another replica than the one that "
            "wrote it; name a folder that all of them share: files=DIR"
        )
    return _deployment(settings, options).bind()


def _read_settings(values: Mapping[str, object]) -> ServerSettings:
    """Return the settings of a replica, whose directory is another one: all paths are absolute."""
    keys = dict(values)
    config, model = keys.pop("config", None), keys.pop("model", None)
    if model is not None:
        keys["models"] = model if isinstance(model, list) else [model]
    settings = load_settings(Path(str(config)) if config else None, keys)
    changes: dict[str, object] = {
        name: os.path.abspath(path)
        for name, path in (("keys", settings.keys), ("files", settings.files))
        if path
    }
    changes["models"] = [os.path.abspath(run) for run in settings.models]
    changes["threads"] = settings.threads or 1  # as many as Ray reserves
    return replace_settings(settings, changes, BUILDER)


def _deployment(settings: ServerSettings, options: ReplicaOptions) -> serve.Deployment:
    """Return the deployment: what a replica needs and runs, and how many there are."""

    def build_replica() -> Any:
        tune_memory()
        log_to_stderr()
        return build_application(Server.build(settings))

    cores = settings.workers if settings.workers > 1 else settings.threads
    number: dict[str, object] = {"num_replicas": options.replicas}
    if options.max_replicas:
        number = {
            "autoscaling_config": {
                "min_replicas": options.replicas,
                "max_replicas": options.max_replicas,
                "target_ongoing_requests": options.requests_per_replica,
            }
        }
    return serve.deployment(
        serve.ingress(build_replica)(),
        name="nmt",
        ray_actor_options={"num_cpus": cores, "num_gpus": 0 if is_cpu(settings.device) else 1},
        max_ongoing_requests=MAX_ONGOING_REQUESTS,
        graceful_shutdown_timeout_s=settings.drain_seconds,
        **number,
    )
