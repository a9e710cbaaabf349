"""The console's pages and its interface, as an ASGI application. `access.py` says who may use it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeAlias, cast

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gripfast.edges.console.access import COOKIE, HEADERS, PATH, ConsoleAccess
from gripfast.edges.console.data import ConsoleData
from gripfast.errors import InvalidArgument, ToolError
from gripfast.host.program.packaged import packaged_files
from gripfast.host.questions.queue import AnsweredBefore, NoQuestion
from gripfast.host.shell.callers import Callers

_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_LOOK_SECONDS = 0.05
_HEARTBEAT_LOOKS = 300
_SAY_LOOKING = 20  # looks
_LARGEST_BODY = 1 << 16
_FOR_PEOPLE = (
    "an agent's commands may not use this console; while one runs, neither may a program that gripfast can't identify"
)
_VERDICTS = ("yes", "no", "always", "always_leading", "remember")
_STATUS: dict[type[ToolError], int] = {AnsweredBefore: 409, NoQuestion: 404, InvalidArgument: 400}

Work: TypeAlias = Callable[[Request], Any]


def console_app(access: ConsoleAccess, data: ConsoleData) -> Starlette:
    """The application, to be served at the root of an address or beside something else."""
    pages = _ConsolePages(access)
    interface = _Interface(access, data)
    routes = [
        Route(PATH, pages.index),
        Route(f"{PATH}/static/{{name}}", pages.file),
        Route(f"{PATH}/events", interface.events),
        Route(f"{PATH}/api/sessions", interface.reading(lambda _: data.sessions())),
        Route(f"{PATH}/api/questions", interface.reading(lambda _: data.questions())),
        Route(f"{PATH}/api/quota", interface.reading(lambda _: data.quota())),
        Route(f"{PATH}/api/calls", interface.reading(lambda asked: _calls(data, asked))),
        Route(f"{PATH}/api/call", interface.reading(lambda asked: _call(data, asked))),
        Route(f"{PATH}/api/running", interface.reading(lambda _: data.running())),
        Route(f"{PATH}/api/output", interface.reading(lambda asked: data.output(asked.query_params["id"]))),
        Route(f"{PATH}/api/todos", interface.reading(lambda asked: data.todos(asked.query_params["place"]))),
        Route(f"{PATH}/api/answer", interface.answer, methods=["POST"]),
        Route(f"{PATH}/api/end", interface.end, methods=["POST"]),
        Route(f"{PATH}/api/undo", interface.undo, methods=["POST"]),
    ]
    return Starlette(routes=routes)


def for_people(console: ASGIApp) -> ASGIApp:
    """The application for whoever connects, except commands of agents: these get nothing, whatever keys they have."""
    callers = Callers()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        client: tuple[str, int] | None = scope.get("client")
        server: tuple[str, int] | None = scope.get("server")
        if not client or not server or await to_thread.run_sync(callers.is_command, client, server):
            await _text(403, _FOR_PEOPLE)(scope, receive, send)
        else:
            await console(scope, receive, send)

    return app


def _calls(data: ConsoleData, asked: Request) -> Any:
    others = asked.query_params.get("others", "")
    return data.calls(asked.query_params["place"], _number(asked, "since"), _number(asked, "most"), others)


def _call(data: ConsoleData, asked: Request) -> Any:
    return data.call(asked.query_params["place"], _number(asked, "number"), asked.query_params.get("server", ""))


def _number(asked: Request, name: str) -> int:
    text = asked.query_params.get(name, "0")
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise InvalidArgument(f"`{name}` must be a number")
    return int(text)


class _ConsolePages:
    """The page and its files."""

    def __init__(self, access: ConsoleAccess) -> None:
        self._access = access
        self._files = packaged_files("gripfast.edges.console", "static")

    async def index(self, request: Request) -> Response:
        """The page; with a link's key the cookie, and the page without the key in its address."""
        if not self._access.is_named(request.headers):
            return _text(403, "this console does not accept that Host header")
        key = request.query_params.get("key")
        if key is not None:
            return self._redeemed(key, request.query_params.get("question", ""))
        refusal = self._access.refusal("GET", request.headers, request.cookies.get(COOKIE))
        if refusal is not None:
            return _text(403, refusal)
        return Response(self._files["index.html"], media_type="text/html", headers=HEADERS)

    def _redeemed(self, key: str, question: str) -> Response:
        redeemed = self._access.redeem(key)
        if redeemed is None:
            return _text(403, "this link was used before, or belongs to another console; get a new one")
        cookie, secret = redeemed
        shown = question if question.isalnum() else ""
        # Not a redirect: a link that was opened by another page would arrive without the strict cookie.
        response = _text(200, "opening the console")
        response.headers["refresh"] = f"0; url={PATH}#{shown}!{secret}"
        response.set_cookie(COOKIE, cookie, path=PATH, httponly=True, samesite="strict")
        return response

    async def file(self, request: Request) -> Response:
        refusal = self._access.refusal("GET", request.headers, request.cookies.get(COOKIE))
        name = request.path_params["name"]
        if refusal is not None:
            return _text(403, refusal)
        if name not in self._files:
            return _text(404, "there is no such file")
        kind = _KINDS.get(name.rpartition(".")[2], "application/octet-stream")
        return Response(self._files[name], media_type=kind, headers=HEADERS)


class _Interface:
    """What the page asks for and does."""

    def __init__(self, access: ConsoleAccess, data: ConsoleData) -> None:
        self._access = access
        self._data = data

    def reading(self, work: Work) -> Callable[[Request], Any]:
        async def answered(request: Request) -> Response:
            return await self._answered(request, lambda: work(request))

        return answered

    async def answer(self, request: Request) -> Response:
        """Answers a question."""
        body = await self._body(request)
        verdict, id, because = body.get("verdict"), body.get("id"), body.get("because", "")
        if verdict not in _VERDICTS or not isinstance(id, str) or not isinstance(because, str):
            return _json(400, {"error": "an answer needs an `id` and a `verdict`"})

        def work() -> Any:
            self._data.queue.answer(id, verdict, by="page", because=because[:1000])
            return {"answered": id}

        return await self._answered(request, work)

    async def end(self, request: Request) -> Response:
        """Ends a background shell."""
        id = (await self._body(request)).get("id")
        if not isinstance(id, str):
            return _json(400, {"error": "to end a shell, give its `id`"})

        def work() -> Any:
            return {"ending": self._data.shells.end(id).name}

        return await self._answered(request, work)

    async def undo(self, request: Request) -> Response:
        """Takes calls back, or says what that would do."""
        body = await self._body(request)
        place, calls, paths = body.get("place"), body.get("calls"), body.get("paths", [])
        if not isinstance(place, str) or not _is_list(calls, int) or not calls or not _is_list(paths, str):
            return _json(400, {"error": "an undo needs a `place` and `calls`"})
        dry_run = body.get("dry_run") is not False

        def work() -> Any:
            return self._data.undo(place, calls, paths, dry_run=dry_run)

        return await self._answered(request, work)

    async def events(self, request: Request) -> Response:
        """Tells the page when it should look again."""
        refusal = self._refusal(request)
        if refusal is not None:
            return _json(403, {"error": refusal})
        return StreamingResponse(self._changes(), media_type="text/event-stream", headers=HEADERS)

    async def _changes(self) -> AsyncIterator[bytes]:
        before: dict[str, object] = {}
        looks = 0
        while True:
            now = await to_thread.run_sync(self._stamps, looks % _SAY_LOOKING == 0)
            looks += 1
            for kind, stamp in now.items():
                if before.get(kind) != stamp:
                    yield f"event: {kind}\ndata: {{}}\n\n".encode()
            if now == before and looks % _HEARTBEAT_LOOKS == 0:
                yield b": still here\n\n"
            before = now
            await anyio.sleep(_LOOK_SECONDS)

    def _stamps(self, say_looking: bool) -> dict[str, object]:
        if say_looking:
            self._data.shells.looks()
        return {"changed": self._data.stamps(), "running": self._data.shells.stamp()}

    async def _answered(self, request: Request, work: Callable[[], Any]) -> Response:
        refusal = self._refusal(request)
        if refusal is not None:
            return _json(403, {"error": refusal})
        try:
            return _json(200, await to_thread.run_sync(work))
        except KeyError as missing:
            return _json(400, {"error": f"{missing} is missing"})
        except ToolError as fault:
            return _json(_STATUS.get(type(fault), 422), {"error": fault.message})
        except OSError as fault:
            return _json(500, {"error": f"the state directory can't be used: {fault.strerror}"})

    def _refusal(self, request: Request) -> str | None:
        return self._access.data_refusal(request.method, request.headers, request.cookies.get(COOKIE))

    async def _body(self, request: Request) -> dict[str, Any]:
        """The JSON object of a request; an empty one for anything else, and for whoever may not ask."""
        if self._refusal(request) is not None:
            return {"verdict": "no", "id": "", "place": "", "calls": [0]}
        data = b""
        try:
            async for chunk in request.stream():
                data += chunk
                if len(data) > _LARGEST_BODY:
                    return {}
            value = json.loads(data)
        except (ValueError, RecursionError, ClientDisconnect):
            return {}
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(type(one) is kind for one in cast("list[Any]", value))


def _json(status: int, value: Any) -> Response:
    return JSONResponse(value, status, headers=HEADERS)


def _text(status: int, text: str) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers=HEADERS)
