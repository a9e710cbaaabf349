"""Numbers about the server in the text format of Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats/ A label has only values that the server knows beforehand:
its own tools, the codes of errors, HTTP statuses. What a client makes up becomes `other`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from importlib.metadata import version

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from gripfast.call.cache.sink import FAILURES
from gripfast.clock import utc_now
from gripfast.edges.mcp.observed import ASKED, OK, ObservedCall
from gripfast.edges.mcp.sessions import Sessions
from gripfast.errors import CODES
from gripfast.host.shell.shells import running_commands
from gripfast.records import dataclass

PATH = "/metrics"
OTHER = "other"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_OUTCOMES = CODES | {OK, ASKED}
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(BOUNDS, value)] += 1
        self.total += value


class Metrics:
    """Counts what the server does. An observer of calls."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._calls: Counter[Labels] = Counter()
        self._seconds: defaultdict[str, _Histogram] = defaultdict(_Histogram)
        self._running = 0
        self._bytes: Counter[str] = Counter()
        self._outputs: Counter[str] = Counter()
        self._responses: Counter[int] = Counter()
        self._started = utc_now().timestamp()

    @contextmanager
    def watch(self, call: ObservedCall) -> Generator[None]:
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            tool = call.call.name if call.is_known else OTHER
            self._calls[_labels(tool=tool, outcome=call.outcome if call.outcome in _OUTCOMES else OTHER)] += 1
            self._seconds[tool].add(call.seconds)
            self._bytes["received"] += call.bytes_in
            self._bytes["sent"] += call.bytes_out
            if call.stored is not None:
                self._outputs["count"] += 1
                self._outputs["bytes"] += call.stored

    def responded(self, status: int) -> None:
        self._responses[status] += 1

    async def respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = PlainTextResponse(self.text(), media_type="text/plain; version=0.0.4")
        await answer(scope, receive, send)

    def text(self) -> str:
        return "".join(f"{line}\n" for family in self._families() for line in family)

    def _families(self) -> Iterator[Iterator[str]]:
        one = Labels()
        yield _family("info", "gauge", "The version that runs.", {_labels(version=version("gripfast")): 1})
        yield _family("start_time_seconds", "gauge", "When the server started.", {one: self._started})
        yield _family("calls_total", "counter", "Tool calls by tool and outcome.", self._calls)
        yield self._histograms()
        yield _family("calls_running", "gauge", "Tool calls under way.", {one: self._running})
        yield _family("received_bytes_total", "counter", "Bytes of arguments.", {one: self._bytes["received"]})
        yield _family("sent_bytes_total", "counter", "Bytes of answers.", {one: self._bytes["sent"]})
        yield _family("sessions", "gauge", "Open sessions.", {one: self._sessions.count()})
        yield _family("shells", "gauge", "Commands that run, in the background or not.", {one: running_commands()})
        yield _family("cached_outputs_total", "counter", "Outputs put into the cache.", {one: self._outputs["count"]})
        yield _family("cached_bytes_total", "counter", "Bytes put into the cache.", {one: self._outputs["bytes"]})
        yield _family(
            "store_errors_total", "counter", "Failures of the stores of outputs and sessions.", {one: FAILURES.count}
        )
        yield _family("people", "gauge", "Owners of tokens.", {one: len(self._sessions.people)})
        statuses = {_labels(code=str(code)): count for code, count in self._responses.items()}
        yield _family("http_responses_total", "counter", "HTTP responses by status.", statuses)

    def _histograms(self) -> Iterator[str]:
        yield from _head("call_duration_seconds", "histogram", "How long tool calls took, by tool.")
        for tool, histogram in sorted(self._seconds.items()):
            below = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), histogram.counts, strict=True):
                below += count
                yield _sample("call_duration_seconds_bucket", _labels(tool=tool, le=bound), below)
            yield _sample("call_duration_seconds_sum", _labels(tool=tool), histogram.total)
            yield _sample("call_duration_seconds_count", _labels(tool=tool), below)


def _labels(**values: str) -> Labels:
    return tuple(values.items())


def _family(name: str, kind: str, help: str, samples: Mapping[Labels, float]) -> Iterator[str]:
    yield from _head(name, kind, help)
    for labels, value in sorted(samples.items()):
        yield _sample(name, labels, value)


def _head(name: str, kind: str, help: str) -> Iterable[str]:
    return f"# HELP gripfast_{name} {help}", f"# TYPE gripfast_{name} {kind}"


def _sample(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_written(text)}"' for key, text in labels)
    return f"gripfast_{name}{{{inside}}} {value}" if inside else f"gripfast_{name} {value}"


def _written(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class MetricsOnly:
    """The app of a port that has nothing but the metrics, and asks for no token."""

    def __init__(self, metrics: Metrics, hosts: Iterable[str]) -> None:
        self._metrics = metrics
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if self._hosts and host not in self._hosts:  # a web page whose name leads to loopback
            await PlainTextResponse("another Host is expected\n", 421)(scope, receive, send)
        elif scope["path"] != PATH or scope["method"] not in ("GET", "HEAD"):
            await PlainTextResponse(f"the metrics are at {PATH}\n", 404)(scope, receive, send)
        else:
            await self._metrics.respond(scope, receive, send)
