"""The toolkit for other programs: the built-in tools as typed methods, under a policy and a write scope.

Each call passes the policy (may this tool run?), then the sandbox (may it run here, on this path?), then runs. The
answer is never an exception: it is a success with its data, or a denial or failure with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, NotRequired, TypeAlias, TypedDict, TypeVar, cast

from gripfast.builtin.catalog import ToolCatalog, ToolName
from gripfast.builtin.session import open_session
from gripfast.call.run import Session
from gripfast.errors import InvalidArgument, PolicyDenied, SandboxViolation, ToolError, ToolNotFound
from gripfast.host.files.scope import Scope
from gripfast.host.search.search_types import OutputMode
from gripfast.messages import Part, ToolMessage
from gripfast.records import dataclass
from gripfast.text.near import did_you_mean

T = TypeVar("T")
WriteScope: TypeAlias = Literal["read-only", "workspace-write", "unrestricted"]
PolicyAction: TypeAlias = Literal["allow", "deny"]

_WRITE_SCOPES = ("read-only", "workspace-write", "unrestricted")
_ACTIONS = ("allow", "deny")


class Policy(TypedDict, total=False):
    """Which tools may run; `default_policy` ("deny" by default) applies to tools that are not named."""

    tools: Mapping[str, PolicyAction]
    default_policy: PolicyAction


class ErrorData(TypedDict):
    code: str
    message: str
    retriable: bool
    details: dict[str, Any]


class Success(TypedDict, Generic[T]):
    status: Literal["success"]
    data: T


class Refusal(TypedDict):
    status: Literal["denied", "failure"]
    reason: Literal["policy", "sandbox", "runtime"]
    message: str
    error: ErrorData


Outcome: TypeAlias = Success[T] | Refusal


class FileMetaData(TypedDict):
    byte_length: int
    line_count: int
    returned_line_count: int
    mtime_ms: int


class FileData(TypedDict):
    path: str
    content: str
    truncated: bool
    next_start_line: int | None
    meta: FileMetaData


class TreeEntry(TypedDict):
    name: str
    path: str
    depth: int
    kind: Literal["directory", "file", "symlink"]
    truncated: NotRequired[bool]
    children: NotRequired[list[TreeEntry]]


class TreeData(TypedDict):
    root: TreeEntry
    limit_reached: bool
    scanned_entries: int
    total_dirs: int
    total_files: int
    total_symlinks: int


@dataclass(frozen=True, slots=True)
class AgentContext:
    """The workspace, write scope and allowed tools of a toolkit. Made and checked by `create_tool_context`."""

    scope: Scope
    write_scope: WriteScope
    allowed: frozenset[str]

    def refusal(self, name: str) -> ToolError | None:
        """Why a tool may not run here, or None: the policy is checked first, then the sandbox."""
        tool = ToolCatalog.get(name)
        if tool is None:
            return ToolNotFound(f"no tool named `{name[:80]}`; {did_you_mean(name, ToolCatalog)}")
        if name not in self.allowed:
            return PolicyDenied(f"the policy does not allow `{name}`; allow it in policy['tools']")
        if self.write_scope == "read-only" and tool.traits.effect != "read":
            return SandboxViolation(f"`{name}` can write, and the write scope is read-only; use 'workspace-write'")
        return None


def create_tool_context(
    *, workspace_root: str, write_scope: WriteScope = "read-only", policy: Policy | None = None
) -> AgentContext:
    """A workspace, where tools may write, and which tools may run. Raises ToolError for invalid values.

    `unrestricted` reads and writes anywhere; `read_file`, `tree` and `lisp-read-file` stay in the workspace.
    """
    if write_scope not in _WRITE_SCOPES:
        raise InvalidArgument(f"write_scope {write_scope!r}: use one of {', '.join(_WRITE_SCOPES)}")
    if write_scope == "unrestricted":
        scope = Scope(read=None, write=[workspace_root, "/"], wide=True)
    else:
        scope = Scope.workspace(workspace_root, read_only=write_scope == "read-only")
    return AgentContext(scope, write_scope, _allowed(policy or {}))


def _allowed(policy: Policy) -> frozenset[str]:
    unknown = [key for key in policy if key not in ("tools", "default_policy")]
    if unknown:
        raise InvalidArgument(f"unknown policy key {unknown[0]!r}; use 'tools' and 'default_policy'")
    named, default = policy.get("tools", {}), policy.get("default_policy", "deny")
    for name, action in (*named.items(), ("default_policy", default)):
        if action not in _ACTIONS:
            raise InvalidArgument(f"policy for {name!r} is {action!r}; use 'allow' or 'deny'")
        if name not in ToolCatalog and name != "default_policy":
            raise InvalidArgument(f"policy names {name!r}, which is not a tool; {did_you_mean(name, ToolCatalog)}")
    return frozenset(name for name in ToolCatalog if named.get(name, default) == "allow")


def create_agent_toolkit(context: AgentContext) -> AgentToolkit:
    """The toolkit of a context. Close it (`async with`, or `aclose`) to end what it left running."""
    return AgentToolkit(context)


class AgentToolkit:
    """Call `.tools.<name>(...)` or `.invoke(name, args)` and await the answer; neither raises."""

    def __init__(self, context: AgentContext) -> None:
        self.context = context
        self.tools = AgentTools(self)
        self._session: Session | None = None

    def get_allowed_tools(self) -> list[str]:
        """The names of the tools that may run under the policy and the write scope."""
        return [name for name in ToolCatalog if self.context.refusal(name) is None]

    async def invoke(self, name: ToolName | str, args: Mapping[str, Any] | str | None = None) -> Outcome[Any]:
        """Calls a tool by name, with an object or its JSON text."""
        refused = self.context.refusal(name)
        if refused is not None:
            return _refused(refused)
        if self._session is None:
            self._session = open_session(self.context.scope)
        return _outcome(await self._session.call(name, args))

    async def aclose(self) -> None:
        """Ends what the calls left running. A later call starts a new session."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def __aenter__(self) -> AgentToolkit:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _outcome(message: ToolMessage) -> Outcome[Any]:
    if message.error is not None:
        return _refused(message.error)
    return {"status": "success", "data": _data(message)}


def _data(message: ToolMessage) -> str | tuple[Part, ...] | dict[str, Any]:
    """The parsed value of a tool with an output schema, else the text or parts."""
    if isinstance(message.content, str) and ToolCatalog[message.name].traits.output_schema is not None:
        return json.loads(message.content)
    return message.content


def _refused(error: ToolError) -> Refusal:
    denied = isinstance(error, PolicyDenied | SandboxViolation)
    reason = "policy" if isinstance(error, PolicyDenied) else "sandbox" if denied else "runtime"
    return {
        "status": "denied" if denied else "failure",
        "reason": reason,
        "message": error.message,
        "error": {
            "code": error.code,
            "message": error.message,
            "retriable": error.retriable,
            "details": error.details,
        },
    }


class AgentTools:
    """One method per tool, with the tool's arguments. An argument that is None is not sent."""

    def __init__(self, toolkit: AgentToolkit) -> None:
        self._toolkit = toolkit

    async def _call(self, name: ToolName, **arguments: Any) -> Any:
        given = {key: value for key, value in arguments.items() if value is not None}
        return await self._toolkit.invoke(name, given)

    async def read_file(self, path: str, start_line: int = 1, max_lines: int = 200) -> Outcome[FileData]:
        return await self._call("read_file", path=path, start_line=start_line, max_lines=max_lines)

    async def tree(
        self,
        path: str,
        entry_kind: Literal["directory", "all"] = "directory",
        max_depth: int = 3,
        max_entries: int = 100,
        include_hidden: bool = False,
        exclude: Sequence[str] | None = None,
    ) -> Outcome[TreeData]:
        return await self._call(
            "tree",
            path=path,
            entry_kind=entry_kind,
            max_depth=max_depth,
            max_entries=max_entries,
            include_hidden=include_hidden,
            exclude=exclude,
        )

    async def outline(
        self, path: str, name_pattern: str | None = None, content_pattern: str | None = None, limit: int = 1000
    ) -> Outcome[str]:
        return await self._call(
            "outline", path=path, name_pattern=name_pattern, content_pattern=content_pattern, limit=limit
        )

    async def lisp_read_file(
        self,
        path: str,
        collapsed: bool = True,
        name_pattern: str | None = None,
        content_pattern: str | None = None,
        offset: int = 0,
        limit: int = 2000,
        only_matches: bool = False,
    ) -> Outcome[dict[str, Any]]:
        return await self._call(
            "lisp-read-file",
            path=path,
            collapsed=collapsed,
            name_pattern=name_pattern,
            content_pattern=content_pattern,
            offset=offset,
            limit=limit,
            only_matches=only_matches,
        )

    async def Read(
        self, file_path: str, offset: int = 0, limit: int = 2000, line_offset: int = 0, pages: str | None = None
    ) -> Outcome[str | tuple[Part, ...]]:
        return await self._call(
            "Read", file_path=file_path, offset=offset, limit=limit, line_offset=line_offset, pages=pages
        )

    async def Write(self, file_path: str, content: str) -> Outcome[str]:
        return await self._call("Write", file_path=file_path, content=content)

    async def Edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
        match_mode: Literal["auto", "exact", "line_trimmed", "block_anchor"] = "auto",
        expected_replacements: int | None = None,
        dry_run: bool = False,
        expected_hash: str | None = None,
    ) -> Outcome[str]:
        return await self._call(
            "Edit",
            file_path=file_path,
            old_string=old_string,
            new_string=new_string,
            replace_all=replace_all,
            match_mode=match_mode,
            expected_replacements=expected_replacements,
            dry_run=dry_run,
            expected_hash=expected_hash,
        )

    async def NotebookEdit(
        self,
        notebook_path: str,
        cell: int,
        new_source: str | None = None,
        cell_type: Literal["code", "markdown", "raw"] | None = None,
        edit_mode: Literal["replace", "insert", "delete"] = "replace",
    ) -> Outcome[str]:
        return await self._call(
            "NotebookEdit",
            notebook_path=notebook_path,
            cell=cell,
            new_source=new_source,
            cell_type=cell_type,
            edit_mode=edit_mode,
        )

    async def apply_patch(self, patch: str, dry_run: bool = False) -> Outcome[str]:
        return await self._call("apply_patch", patch=patch, dry_run=dry_run)

    async def Glob(self, pattern: str, path: str | None = None, include_ignored: bool = False) -> Outcome[str]:
        return await self._call("Glob", pattern=pattern, path=path, include_ignored=include_ignored)

    async def Grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        type: str | None = None,
        output_mode: OutputMode = "files_with_matches",
        *,
        n: bool = True,
        i: bool = False,
        A: int | None = None,
        B: int | None = None,
        C: int | None = None,
        multiline: bool = False,
        head_limit: int = 250,
        offset: int = 0,
        include_ignored: bool = False,
    ) -> Outcome[str]:
        """`n`, `i`, `A`, `B`, `C` are the tool's `-n`, `-i`, `-A`, `-B`, `-C`."""
        dashed = {"-n": n, "-i": i, "-A": A, "-B": B, "-C": C}
        return await self._call(
            "Grep",
            pattern=pattern,
            path=path,
            glob=glob,
            type=type,
            output_mode=output_mode,
            multiline=multiline,
            head_limit=head_limit,
            offset=offset,
            include_ignored=include_ignored,
            **cast("dict[str, Any]", dashed),
        )

    async def Bash(
        self,
        command: str,
        description: str | None = None,
        timeout: int = 120_000,
        run_in_background: bool = False,
        dry_run: bool = False,
        outside_sandbox: str | None = None,
        max_output: int | None = None,
        stdin: bool = False,
        tty: bool = False,
    ) -> Outcome[str]:
        return await self._call(
            "Bash",
            command=command,
            description=description,
            timeout=timeout,
            run_in_background=run_in_background,
            dry_run=dry_run,
            outside_sandbox=outside_sandbox,
            max_output=max_output,
            stdin=stdin,
            tty=tty,
        )

    async def BashOutput(
        self, bash_id: str, offset: int | None = None, filter: str | None = None, wait_ms: int = 0
    ) -> Outcome[str]:
        return await self._call("BashOutput", bash_id=bash_id, offset=offset, filter=filter, wait_ms=wait_ms)

    async def BashInput(self, bash_id: str, text: str, wait_ms: int = 1000) -> Outcome[str]:
        return await self._call("BashInput", bash_id=bash_id, text=text, wait_ms=wait_ms)

    async def KillBash(self, bash_id: str) -> Outcome[str]:
        return await self._call("KillBash", bash_id=bash_id)

    async def tool_output_cache(
        self, ref_id: str, offset: int = 0, limit: int = 2000, line_offset: int = 0
    ) -> Outcome[str | tuple[Part, ...]]:
        return await self._call(
            "tool_output_cache", ref_id=ref_id, offset=offset, limit=limit, line_offset=line_offset
        )

    async def tool_output_cache_grep(
        self,
        ref_id: str,
        pattern: str,
        regex: bool = False,
        before: int = 0,
        after: int = 0,
        max_matches: int = 50,
    ) -> Outcome[str]:
        return await self._call(
            "tool_output_cache_grep",
            ref_id=ref_id,
            pattern=pattern,
            regex=regex,
            before=before,
            after=after,
            max_matches=max_matches,
        )

    async def write_todos(
        self, todos: Sequence[Mapping[str, Any]], mode: Literal["merge", "replace"] = "merge"
    ) -> Outcome[dict[str, Any]]:
        return await self._call("write_todos", todos=todos, mode=mode)

    async def done(self, message: str = "") -> Outcome[str]:
        return await self._call("done", message=message)
