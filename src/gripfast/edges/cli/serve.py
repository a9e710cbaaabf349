"""`gripfast serve`: the MCP server."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import click

from gripfast.edges.cli.clients import paste_instructions
from gripfast.edges.cli.loading import loading
from gripfast.edges.cli.options import SessionSettings, answer_within_option, as_usage_errors, session_options
from gripfast.edges.cli.say import say
from gripfast.edges.early import early_answers
from gripfast.edges.issuer import Issuer
from gripfast.edges.logs import Log, LogFormat, logging_to
from gripfast.edges.profiles import price
from gripfast.errors import InvalidArgument
from gripfast.host.kernel.prctl import hide_process
from gripfast.host.program.ending import end_for_sure
from gripfast.host.program.machine_names import host_name
from gripfast.host.program.net import Address, PublicUrl, listen, parse_address, parse_url
from gripfast.host.program.secrets import http_token
from gripfast.host.program.signals import ignore_early_hangup
from gripfast.host.program.token_file import Token, TokenFile
from gripfast.host.questions.page import page_at
from gripfast.host.questions.redis_questions import NO_PASSWORD, RedisQuestions, sealing_key
from gripfast.host.stores.embedded_sessions import EmbeddedSessions
from gripfast.host.stores.redis_sessions import RedisSessions
from gripfast.host.stores.redis_store import RedisStore
from gripfast.host.stores.store import EmbeddedStore
from gripfast.records import dataclass

if TYPE_CHECKING:
    from gripfast.edges.mcp.http import Access
    from gripfast.edges.mcp.sharing import Sharing

_ON_A_TERMINAL = """\
waiting for MCP messages on this terminal; press Ctrl-C to stop
  to have a client start the server:  gripfast init claude
  to serve over HTTP:                 gripfast serve --http 127.0.0.1:8765"""


@click.command(short_help="Serve the tools over MCP, on stdio or HTTP.")
@session_options
@click.option("--http", "address", metavar="HOST:PORT", help="Serve over HTTP instead; port 0 picks a free port.")
@click.option(
    "--token-file",
    metavar="FILE",
    help="Tokens to accept over HTTP, one per line: NAME TOKEN [profile=NAME] [rules=NAME] [root=DIR] [readonly]. "
    "Read again when it changes.",
)
@click.option(
    "--oauth-issuer",
    metavar="URL",
    help="Accept access tokens (JWT) of this authorization server, made for --url. Its metadata name its keys.",
)
@click.option("--oauth-jwks", metavar="URL", help="Where the issuer's public keys are, if it has no metadata.")
@click.option("--oauth-audience", metavar="TEXT", help="The audience that tokens must have, if that is not --url.")
@click.option("--oauth-scope", "oauth_scopes", multiple=True, metavar="NAME", help="A scope that tokens must have.")
@click.option("--new-token", is_flag=True, help="Replace your token; the old one stops working.")
@click.option("--no-token", is_flag=True, help="Accept HTTP requests without a token. On loopback only.")
@click.option(
    "--url",
    metavar="URL",
    help="Where clients reach this server, if a proxy is in front; its Host header is accepted.",
)
@click.option(
    "--metrics",
    "metrics_address",
    metavar="HOST:PORT",
    help="Serve /metrics there without a token, too. With a token it is beside /mcp.",
)
@click.option("--allow-host", "hosts", multiple=True, metavar="HOST:PORT", help="Accept this Host header.")
@click.option("--allow-origin", "origins", multiple=True, metavar="URL", help="Accept this Origin header.")
@click.option(
    "--store",
    metavar="URL",
    help="Share sessions and outputs with other servers in this Redis (redis://HOST:PORT/0). Default: your "
    "configuration's, else files of this user.",
)
@answer_within_option(
    "Answer each call within this time, so that no client gives up: a question that nobody has answered waits in "
    "`gripfast approvals`, a command goes on in the background. Default: 50, or what is known of the client. "
    "0: no limit, and no question waits."
)
@click.option(
    "--log-format",
    type=click.Choice(("text", "json")),
    help="Log each call on standard error: who, what, decision, time, bytes. Over HTTP the default is text.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log sessions and refused requests, too.")
@click.option("--log-content", is_flag=True, help="Log arguments and answers, too, without known secrets.")
@click.option("--else-any-port", is_flag=True, hidden=True)
@click.option(
    "--own-code-in-reach",
    is_flag=True,
    help="Start even if commands, without a sandbox, can change the code of this server.",
)
@click.option(
    "--idle-minutes", default=30.0, show_default=True, help="Close an HTTP session that is unused for this long."
)
def serve(
    settings: SessionSettings,
    address: str | None,
    idle_minutes: float,
    own_code_in_reach: bool,
    answer_within: float | None,
    log_format: LogFormat | None,
    verbose: bool,
    log_content: bool,
    store: str | None,
    **http_options: Any,
) -> None:
    """Serve the tools to MCP clients: one on standard input and output, or many over HTTP.

    \b
    gripfast serve                                   the client's roots, else this directory
    gripfast serve --root ~/code/app --profile agent
    gripfast serve --http 127.0.0.1:8765             with a token; prints what to paste into a client
    """
    hide_process()
    settings = replace(settings, answer_within=answer_within, store=store)
    if not own_code_in_reach:
        _refuse_own_code_in_reach(settings)
    wanted = address is not None or log_format or verbose or log_content
    logs = logging_to(log_format or "text", verbose=verbose, content=log_content)
    with end_for_sure(), logs if wanted else nullcontext() as log:
        if address is None:
            _on_stdio(settings, log)
        else:
            assert log is not None
            _over_http(settings, log, address, idle_minutes * 60, HttpOptions(**http_options))


def _refuse_own_code_in_reach(settings: SessionSettings) -> None:
    """Without a sandbox, a command could change the server that runs it if its code is in the served directory."""
    place = settings.own_code_in_reach()
    if place is not None:
        raise click.UsageError(
            f"this server's own code is in {place}, inside the directory it would serve, and no sandbox works here "
            "that could keep a command from changing it. Install gripfast elsewhere (for example with pipx), install "
            "bubblewrap, leave out Bash with --tools, or accept it with --own-code-in-reach"
        )


def _on_stdio(settings: SessionSettings, log: Log | None) -> None:
    _need_sdk()
    if settings.roots:  # without, the client names them later
        with as_usage_errors():
            settings.config()
    if sys.stdin is None or sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - started without one
        raise click.ClickException("standard input or output is closed; an MCP client needs both (or use --http)")
    if sys.stdin.isatty():
        say(_ON_A_TERMINAL, err=True)
    from gripfast.edges.mcp.sessions import Sessions  # noqa: PLC0415 - the extra `mcp`, and a heavy import
    from gripfast.edges.mcp.stdio import serve_stdio  # noqa: PLC0415 - the same

    sessions = Sessions(settings, ask_for_roots=True)
    if log is not None:
        sessions.observers.append(log)
    with _traces():
        anyio.run(serve_stdio, sessions, early_answers())


@contextmanager
def _traces() -> Generator[None]:
    """Spans are sent to where the environment says while the server runs."""
    from gripfast.edges.mcp.traces import configure  # noqa: PLC0415 - the extra `mcp`, and a heavy import

    send_last = configure()
    try:
        yield
    finally:
        if send_last is not None:
            send_last()


def _need_sdk() -> None:
    try:
        with loading():
            importlib.import_module("gripfast.edges.mcp.server")
    except ModuleNotFoundError as missing:
        raise click.ClickException(f"{missing}; install the MCP server with: pip install 'gripfast[mcp]'") from None


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """The options of `serve` that only matter over HTTP."""

    token_file: str | None
    new_token: bool
    no_token: bool
    url: str | None
    metrics_address: str | None
    oauth_issuer: str | None
    oauth_jwks: str | None
    oauth_audience: str | None
    oauth_scopes: tuple[str, ...]
    hosts: tuple[str, ...]
    origins: tuple[str, ...]
    else_any_port: bool


def _over_http(settings: SessionSettings, log: Log, address: str, idle: float, options: HttpOptions) -> None:
    _need_sdk()
    from gripfast.edges.mcp.http import Access, serve_http  # noqa: PLC0415 - the same
    from gripfast.edges.mcp.people import People  # noqa: PLC0415 - the same
    from gripfast.edges.mcp.quotas import Quotas  # noqa: PLC0415 - the same
    from gripfast.edges.mcp.sessions import Sessions  # noqa: PLC0415 - the extra `mcp`, and a heavy import

    with as_usage_errors():
        wanted = parse_address(address)
        public = None if options.url is None else parse_url(options.url)
        hosts = (*options.hosts, *(public.hosts if public else ()))
        issuer = _issuer(options, public)
        watched = None if options.token_file is None or options.no_token else TokenFile(options.token_file)
        if watched is not None:
            ignore_early_hangup()
        tokens, token_file_path = _tokens(watched, new=options.new_token, none=options.no_token or issuer is not None)
        Access(wanted, tokens, hosts, options.origins, issuer)
        settings.config()
        people = People(settings, tokens, signing_in=issuer is not None)
        root = settings.working_directory()
        listening, got = listen(wanted, else_any_port=options.else_any_port)
        access = Access(got, tokens, hosts, options.origins, issuer)
        metrics_at = None if options.metrics_address is None else listen(parse_address(options.metrics_address))
    if wanted.port not in (0, got.port):
        log.event("warning", "port", f"{wanted} is in use; serving on another port")
    store = settings.config().store
    if store is not None and sealing_key(store) is None:
        log.event("warning", "questions", NO_PASSWORD)
    until_the_end = ExitStack()
    console, link = _console(got, settings.config_file, store, until_the_end)
    token = _shown_token(tokens, options.token_file)
    facts = [
        *([f"  local  http://{got}/mcp"] if public else []),
        f"  root   {root}",
        f"  rules  {settings.rules_in_words()}",
        *([f"  token  {_token_line(tokens, token, token_file_path)}"] if tokens or issuer is None else []),
        *([f"  OAuth  access tokens of {issuer.url}"] if issuer else []),
        *([f"  counts http://{metrics_at[1]}/metrics"] if metrics_at else []),
        *([f"  watch  {link}  (opens once)"] if link else []),
    ]
    at = public.text if public else f"http://{_host(access)}/mcp"
    if log.form == "json":
        more = {"metrics": str(metrics_at[1])} if metrics_at else {}
        log.event("info", "started", "", url=at, address=str(got), root=root, tools=len(settings.tools), **more)
    else:
        say(_banner(settings, at, facts, token), err=True)
    quotas = Quotas(people.expected)
    sharing = _sharing(settings, got, quotas.sessions)
    sessions = Sessions(settings, idle=idle, quotas=quotas, people=people, sharing=sharing)
    sessions.observers.append(log)
    with until_the_end, page_at(str(got)) if console is not None else nullcontext(), _traces():
        anyio.run(serve_http, sessions, access, listening, console, watched, metrics_at)
    log.event("info", "stopped", "stopped")


def _sharing(settings: SessionSettings, address: Address, most: int) -> Sharing:
    from gripfast.edges.mcp.sharing import Sharing  # noqa: PLC0415 - the extra `mcp`, and a heavy import

    url = settings.config().store
    name = f"{host_name()}:{address.port}"
    if url is None:
        return Sharing(EmbeddedSessions(), EmbeddedStore(), name, most=most)
    questions = None if sealing_key(url) is None else partial(RedisQuestions, url)
    return Sharing(RedisSessions(url), RedisStore(url), name, most=most, is_remote=True, questions=questions)


def _issuer(options: HttpOptions, public: PublicUrl | None) -> Issuer | None:
    """The authorization server of the options. Raises InvalidArgument if something is missing or contradicts."""
    if options.oauth_issuer is None:
        if options.oauth_jwks or options.oauth_audience or options.oauth_scopes:
            raise InvalidArgument("--oauth-jwks, --oauth-audience and --oauth-scope need --oauth-issuer")
        return None
    if public is None:
        raise InvalidArgument("--oauth-issuer needs --url: access tokens are made for the address that clients use")
    if options.no_token:
        raise InvalidArgument("--no-token accepts everybody, so --oauth-issuer would mean nothing; leave out one")
    more = (options.oauth_jwks, options.oauth_audience, options.oauth_scopes)
    return Issuer(options.oauth_issuer, public.text, *more)


def _console(
    address: Address, config_file: str | None, store: str | None, until_the_end: ExitStack
) -> tuple[Any, str]:
    """The console of a server on loopback, and the link that opens it once, as it may be printed."""
    if not address.is_loopback:
        return None, ""
    from gripfast.edges.cli.console import for_reader  # noqa: PLC0415 - the same
    from gripfast.edges.console.app import ConsoleAccess, ConsoleData, console_app, for_people  # noqa: PLC0415 - the same
    from gripfast.edges.console.serving import hosts_of  # noqa: PLC0415 - the same

    access = ConsoleAccess(hosts_of(address))
    app = for_people(console_app(access, ConsoleData(config_file, store)))
    return app, for_reader(access.link(), until_the_end)


def _tokens(file: TokenFile | None, *, new: bool, none: bool) -> tuple[list[Token], str]:
    if file is not None:
        return file.read(), file.path
    if none:
        return [], ""
    token, path = http_token(new=new)
    return [Token("you", token)], str(path)


def _banner(settings: SessionSettings, url: str, facts: Sequence[str], token: str | None) -> str:
    """What a person needs after starting the server, on one screen."""
    names = ", ".join(tool.name for tool in settings.tools)
    lines = [
        f"gripfast serves {len(settings.tools)} tools at {url}",
        f"  tools  {names} (about {price(settings.tools)} tokens)",
        *facts,
        "",
        *paste_instructions(url, token),
        "",
        "Press Ctrl-C to stop the server and everything it started.",
    ]
    return "\n".join(lines)


def _host(access: Access) -> str | Address:
    return access.hosts[0] if access.address.is_everywhere else access.address


def _shown_token(tokens: Sequence[Token], token_file: str | None) -> str | None:
    """Your own token, if this is your terminal. A token of somebody else is not shown, and none is written to a log:
    a word stands for it."""
    if not tokens:
        return None
    return tokens[0].token if token_file is None and sys.stderr.isatty() else "TOKEN"


def _token_line(tokens: Sequence[Token], shown: str | None, path: str) -> str:
    if not tokens:
        return "none: any program on this machine may call the tools"
    if shown == tokens[0].token:
        return f"{shown}  (in {path})"
    return f"in {path}; below, TOKEN stands for it" if len(tokens) == 1 else f"{len(tokens)} tokens in {path}"
