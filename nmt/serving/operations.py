"""What operators see: metrics for Prometheus, and a log of JSON lines."""

import functools
import json
import logging
import sys
import time
import traceback
from collections.abc import Mapping
from contextvars import ContextVar

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from nmt.serving.answers import RequestError, refusal_of

METRICS_TYPE = CONTENT_TYPE_LATEST
"""the media type of `Operations.metrics`"""
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
REQUEST: ContextVar[Mapping[str, object]] = ContextVar("request")
"""what the log says of the request that is being answered: each line names its identifier"""
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Operations:
    """The metrics and the log of one server."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        counter = functools.partial(Counter, registry=registry)
        histogram = functools.partial(Histogram, registry=registry, buckets=SECONDS)
        self._requests = counter("nmt_requests", "Answered requests.", ["path", "status"])
        self._request_seconds = histogram("nmt_request_seconds", "Time of a request.", ["path"])
        self._latency = histogram(
            "nmt_translation_seconds", "Time from a request to its translations.", ["model"]
        )
        self._segments = counter("nmt_segments", "Translated segments.", ["model", "cached"])
        self._batch_sizes = histogram(
            "nmt_batch_segments", "Segments of a batch.", ["model"], buckets=BATCH_SIZES
        )
        self._batch_seconds = histogram("nmt_batch_seconds", "Time of a batch.", ["model"])
        self._models = Gauge(
            "nmt_model",
            "1 for the weights that each model has now.",
            ["model", "weights"],
            registry=registry,
        )
        self.stale_keys = Gauge(
            "nmt_keys_stale_seconds",
            "Seconds since the file of keys could last be read; 0 if it can.",
            registry=registry,
        )
        self.queue = Gauge("nmt_queue_segments", "Segments that wait.", registry=registry)
        self._logger = logging.getLogger("nmt.serving")

    def metrics(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)

    def name_models(self, weights: Mapping[str, str]) -> None:
        """Say which weights each model has: their digests, by the names of the models."""
        self._models.clear()
        for model, digest in weights.items():
            self._models.labels(model, digest).set(1)

    def count_request(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request; `path` is that of its route."""
        self._requests.labels(path, status).inc()
        self._request_seconds.labels(path).observe(seconds)

    def count_batch(self, model: str, segments: int, seconds: float) -> None:
        """Count a batch that was translated."""
        self._batch_sizes.labels(model).observe(segments)
        self._batch_seconds.labels(model).observe(seconds)

    def count_translation(self, model: str, segments: int, cached: int, seconds: float) -> None:
        """Count the segments of a request, of which some were in the cache."""
        self._segments.labels(model, "no").inc(segments - cached)
        self._segments.labels(model, "yes").inc(cached)
        self._latency.labels(model).observe(seconds)

    def explain(self, error: Exception) -> RequestError:
        """Return what a client is told about an error, and log what it is not told."""
        refusal = refusal_of(error)
        if refusal is not error and refusal.status >= 500:
            self._logger.error("error", exc_info=error)
        return refusal

    def log(self, event: str, values: Mapping[str, object] | None = None) -> None:
        """Write a line of the log: an event and its values."""
        self._logger.info(event, extra={"values": values or {}})


class JsonFormatter(logging.Formatter):
    """Formats a record of the log as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line: time in UTC, level, event, values, and the traceback of an error."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "values", {}),
        }
        if request := REQUEST.get(None):
            line.setdefault("request_id", request["request_id"])
        if record.exc_info:
            line["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(line, ensure_ascii=True, default=str)


def log_to_stderr() -> None:
    """Write the server's log, and that of its libraries, to stderr."""
    # Python need not look up thread and process for each line: no line names them
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("nmt.serving").setLevel(logging.INFO)
    # it warns of each malformed form, which is answered with 400
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
