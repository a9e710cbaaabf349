"""The server's log: a line for each call and each event, for people or as JSON; without content unless asked for."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gripfast.clock import utc_now
from gripfast.framework.context import LOGGER
from gripfast.host.program.log_lines import LogLines
from gripfast.records import dataclass
from gripfast.text.escape import escaped, visible_json

if TYPE_CHECKING:
    from gripfast.edges.mcp.observed import ObservedCall

LogFormat: TypeAlias = Literal["text", "json"]
MOST_CONTENT = 2000
"""Characters of one call's arguments, and of its answer, in a log that has content."""
CLIENT_LOGGER = "gripfast.client"
_NOISY = ("mcp", "uvicorn")


@dataclass(frozen=True, slots=True)
class Log:
    """Where lines go, and in which form."""

    write: Callable[[str], None]
    form: LogFormat = "text"
    content: bool = False

    def event(self, level: str, name: str, text: str, **facts: Any) -> None:
        """One line. `text` is for people; JSON has it as `message`."""
        time = utc_now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self.form == "json":
            known = {"time": time, "level": level, "event": name, **({"message": text} if text else {}), **facts}
            self.write(visible_json(json.dumps(known, ensure_ascii=False)))
        else:
            mark = "" if level == "info" else f"{level}: "
            self.write(f"{time} {mark}" + "\n    | ".join(map(escaped, text.split("\n"))))

    @contextmanager
    def watch(self, call: ObservedCall) -> Generator[None]:
        """Writes a line after a call."""
        try:
            yield
        finally:
            facts = _facts(call, self.content)
            self.event("info", "call", "" if self.form == "json" else _for_people(call, facts), **facts)


def _facts(call: ObservedCall, content: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "who": call.who,
        "client": call.client[:80],
        "session": call.session,
        "call": call.call.id[:80],
        "tool": call.call.name[:80],
        "decision": call.decision,
        "outcome": call.outcome,
        "exit_code": call.exit_code,
        "seconds": round(call.seconds, 4),
        "bytes_in": call.bytes_in,
        "bytes_out": call.bytes_out,
    }
    if content:
        shown = {"reason": call.redact(call.reason), "arguments": call.arguments(), "answer": call.answer}
        facts |= {name: text[:MOST_CONTENT] for name, text in shown.items()}
    return {name: value for name, value in facts.items() if value not in ("", None)}


def _for_people(call: ObservedCall, facts: dict[str, Any]) -> str:
    words = [
        facts.get("who", "-"),
        facts["tool"] if call.is_known else json.dumps(facts["tool"]),
        facts["outcome"] + (f" (exit {facts['exit_code']})" if facts.get("exit_code") else ""),
        facts.get("decision", "-"),
        f"{facts['seconds']:.3f}s",
        f"{facts['bytes_in']}>{facts['bytes_out']}B",
        f"session={facts.get('session', '-')[:8]}",
        *(f"{name}={json.dumps(facts[name], ensure_ascii=False)}" for name in _CONTENT if facts.get(name)),
    ]
    return " ".join(words)


_CONTENT = ("reason", "arguments", "answer")


class _Handler(logging.Handler):
    """Puts what the program logs into the same log. What a tool tells its client is content."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == CLIENT_LOGGER and record.levelno < logging.WARNING and not self._log.content:
            return
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{logging.Formatter().formatException(record.exc_info)}"
        self._log.event(record.levelname.lower(), "log", text, logger=record.name)


@contextmanager
def logging_to(form: LogFormat, *, verbose: bool, content: bool) -> Generator[Log]:
    """Has everything that the program logs written to standard error, in this form."""
    lines = LogLines()
    log = Log(lines.write, form, content)
    handler, root = _Handler(log), logging.getLogger()
    root.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in _NOISY:  # the SDK logs every request it refuses
        logging.getLogger(name).setLevel(logging.INFO if verbose else logging.ERROR)
    try:
        yield log
    finally:
        root.removeHandler(handler)
        lines.close()
