"""A span of OpenTelemetry for each call, by the conventions for generative AI, if an SDK is configured.

https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/#execute-tool-span
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from opentelemetry.trace import ProxyTracerProvider, SpanKind, StatusCode, get_tracer_provider, set_tracer_provider

from gripfast.edges.mcp.observed import ASKED, OK, ObservedCall
from gripfast.edges.mcp.people import People
from gripfast.framework.context import LOGGER
from gripfast.host.program.telemetry import content_wanted, traces_wanted

MOST_CONTENT = 16_000
"""Characters of arguments, and of a result, in a span."""


def is_configured() -> bool:
    """Whether somebody collects spans."""
    return not isinstance(get_tracer_provider(), ProxyTracerProvider)


def configure() -> Callable[[], object] | None:
    """Sends spans to where the environment says, unless an SDK is configured already. Returns what sends the last
    ones at the end."""
    if is_configured() or not traces_wanted():
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - extra `otel`
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - the same
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - the same
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - the same
    except ModuleNotFoundError as missing:
        LOGGER.warning("no traces are sent: %s; install it with: pip install 'gripfast[otel]'", missing)
        return None
    named = {"service.name": "gripfast", "service.version": version("gripfast")}
    provider = TracerProvider(resource=Resource(named).merge(Resource.create()))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    set_tracer_provider(provider)
    return provider.shutdown


class Traces:
    """Makes a span of each call. An observer of calls."""

    def __init__(self, people: People, *, content: bool | None = None) -> None:
        self._people = people
        self._content = content_wanted() if content is None else content
        self._tracer = get_tracer_provider().get_tracer("gripfast", version("gripfast"))

    @contextmanager
    def watch(self, call: ObservedCall) -> Generator[None]:
        known = any(tool.name == call.call.name for tool in self._people.settings_of(call.who).tools)
        name = f"execute_tool {call.call.name}" if known else "execute_tool"  # few names: a client makes up any
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.call.name[:80],
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.call.id,
            "mcp.method.name": "tools/call",
        }
        if call.protocol_session:
            attributes["mcp.session.id"] = call.protocol_session
        with self._tracer.start_as_current_span(
            name, kind=SpanKind.INTERNAL, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            finally:
                span.set_attributes(self._after(call))
                if call.outcome not in (OK, ASKED):
                    span.set_attribute("error.type", call.outcome)
                    span.set_status(StatusCode.ERROR)

    def _after(self, call: ObservedCall) -> dict[str, Any]:
        """What is known at the end."""
        found: dict[str, Any] = {
            "gripfast.who": call.who,
            "gripfast.session": call.session,
            "gripfast.decision": call.decision,
            "gripfast.exit_code": call.exit_code,
        }
        if self._content:
            found["gen_ai.tool.call.arguments"] = call.arguments()[:MOST_CONTENT]
            found["gen_ai.tool.call.result"] = call.answer[:MOST_CONTENT]
        return {name: value for name, value in found.items() if value not in ("", None)}
