"""The guards around commands, searches and clients: (name, file, the guard, what stands there without it, the tests
that must notice)."""

from __future__ import annotations

PROCESS = "tests/host/test_process.py"
SANDBOX = "tests/host/test_sandbox.py"
SEARCH = "tests/host/test_search.py"
TERMINAL = "tests/host/test_terminal.py"
HTTP = "tests/edges/mcp/test_http.py"
SERVER = "tests/edges/mcp/test_server.py"
STDIO = "tests/edges/mcp/test_stdio.py"
TOOLKIT = "tests/builtin/test_toolkit.py"

COMMAND_GUARDS: tuple[tuple[str, str, str, str, str], ...] = (
    # --- the sandbox ---
    (
        "commands run inside bubblewrap",
        "host/process.py",
        'if sandbox.level == "bwrap" else []',
        "if False else []",
        f"{SANDBOX} -k outside_the_scope",
    ),
    (
        "commands run under Landlock",
        "host/broker.py",
        "        if landlock >= 0:\n            restrict(landlock)\n",
        "",
        f"{SANDBOX} -k outside_the_scope",
    ),
    (
        "protected names are read-only for commands",
        "host/sandbox.py",
        '        *(["--ro-bind", path, path] for path in walls.protected),\n',
        "",
        f"{SANDBOX} -k read_only_under",
    ),
    (
        "a .git can't be moved out of the way",
        "host/sandbox.py",
        '        *(["--bind", path, path] for path in _pinned(walls)),\n',
        "",
        f"{SANDBOX} -k 'hooks_and_config or protected'",
    ),
    (
        "denied places are hidden from commands",
        "host/sandbox.py",
        "        *(_hidden(path) for path in walls.denied),\n",
        "",
        f"{SANDBOX} -k denied_places",
    ),
    (
        "/run is masked",
        "host/sandbox.py",
        'yield ["--tmpfs", "/run"]',
        "yield []",
        f"{SANDBOX} -k hides_run",
    ),
    (
        "walls are built anew when a repository appears",
        "host/process.py",
        'return self._sandbox.level == "none" or fingerprint(scope, self._walls) == self._fingerprint',
        "return True",
        f"{SANDBOX} -k 'repository_made or replaced'",
    ),
    (
        "require means require",
        "host/sandbox.py",
        'if mode == "require" and found.level == "none":',
        "if False:",
        f"{SANDBOX} -k require",
    ),
    (
        "programs don't come from the workspace",
        "host/sandbox.py",
        "if not is_below(os.path.realpath(place), *within) and (found :=",
        "if (found :=",
        f"{SANDBOX} -k never_taken",
    ),
    # --- nothing is left ---
    (
        "orphans come to the supervisor",
        "host/broker.py",
        "_libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)",
        "pass",
        f"{PROCESS} -k 'forks or daemon'",
    ),
    (
        "at its time limit everything of a command is ended",
        "host/broker.py",
        "            survivors = sweep()\n            self._reap()\n",
        "            survivors = []\n            self._reap()\n",
        f"{PROCESS} -k 'ignores'",
    ),
    (
        "a command that nobody waits for is ended",
        "host/broker.py",
        "not self._hear():\n                sweep()\n",
        "not self._hear():\n",
        f"{PROCESS} -k line_is_cut",
    ),
    (
        "the warden ends what a killed server left",
        "host/broker.py",
        "    sweep()\n    if temporary",
        "    if temporary",
        f"{PROCESS} -k killed_server",
    ),
    (
        "what a killed supervisor left is ended",
        "host/broker.py",
        "    if killed:\n        _end_orphans(supervisors)\n",
        "",
        f"{PROCESS} -k kills_its_supervisor",
    ),
    (
        "one that forks faster than a list of processes is read is found",
        "host/broker.py",
        " or newest(seen, spare)",
        "",
        f"{PROCESS} -k no_list_of_processes",
    ),
    (
        "a background flood has a cap",
        "host/broker.py",
        "self.room -= _write_all(self.spool, data[: self.room])",
        "_write_all(self.spool, data)",
        f"{PROCESS} -k stops_growing",
    ),
    # --- what a command sees, and what is seen of it ---
    (
        "variables by allow-list",
        "host/environment.py",
        "if _matches(name, patterns) and _harmless(name, value)}",
        "if _harmless(name, value)}",
        f"{PROCESS} -k allow_list",
    ),
    (
        "secrets never, even when allowed",
        "host/environment.py",
        "if _matches(name, patterns) and _harmless(name, value)}",
        "if _matches(name, patterns)}",
        f"{PROCESS} -k allow_list",
    ),
    (
        "PATH is absolute",
        "host/environment.py",
        '_outside(tuple(roots), chosen.get("PATH", ""))',
        'chosen.get("PATH", "")',
        f"{PROCESS} -k allow_list",
    ),
    (
        "a bare repository runs nothing",
        "host/environment.py",
        '"GIT_CONFIG_COUNT": "1"',
        '"GIT_CONFIG_COUNT": "0"',
        f"{PROCESS} -k allow_list",
    ),
    (
        "no descriptor reaches a command",
        "host/broker.py",
        "        os.set_inheritable(descriptor, False)\n",
        "        os.set_inheritable(descriptor, True)\n",
        f"{PROCESS} -k descriptor",
    ),
    (
        "a command has no input",
        "host/broker.py",
        '(os.POSIX_SPAWN_OPEN, 0, b"/dev/null", os.O_RDONLY, 0)',
        '(os.POSIX_SPAWN_OPEN, 0, b"/etc/passwd", os.O_RDONLY, 0)',
        f"{PROCESS} -k no_input",
    ),
    (
        "escape sequences are stripped",
        "host/terminal.py",
        'text = _ESCAPES.sub("", text)',
        "pass",
        TERMINAL,
    ),
    (
        "controls and direction overrides are stripped",
        "host/terminal.py",
        'return _CONTROLS.sub("", text)',
        "return text",
        TERMINAL,
    ),
)

SEARCH_GUARDS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "ripgrep knows nothing of the user's configuration",
        "host/search.py",
        """                [rg, *arguments],
                cwd=_directory(place),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env={},
""",
        """                [rg, *(word for word in arguments if word != "--no-config")],
                cwd=_directory(place),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
""",
        f"{SEARCH} -k environment_and_config",
    ),
    (
        "a pattern is no option",
        "host/search.py",
        'return [*arguments, "-e", pattern]',
        "return [*arguments, pattern]",
        "tests/builtin/test_grep.py -k 'dash or becomes_an_option'",
    ),
    (
        "a search ends at its deadline",
        "host/search.py",
        "        if left <= 0:\n            return complaints, count, True\n",
        "        left = max(left, 0.1)\n",
        f"{SEARCH} -k deadline",
    ),
    (
        "a stopped search ends",
        "host/search.py",
        "            self.stopped = True\n            if self._process is not None:\n",
        "            self.stopped = True\n            if False:\n",
        f"{SEARCH} -k cancelling_the_caller",
    ),
    (
        "ripgrep reads beneath the root only",
        "host/search.py",
        "        if place.confined:\n            child",
        "        if False:\n            child",
        f"{SEARCH} -k 'swapped or swaps'",
    ),
    (
        "what an unconfined ripgrep reached through links",
        "host/search.py",
        "return [hits for hits in files if _is_reached_without_links(place.root, hits.path)]",
        "return files",
        f"{SEARCH} -k last_look",
    ),
    (
        "ripgrep doesn't come from the workspace",
        "host/search.py",
        "if not any(is_below(spelling, *roots) for spelling in (candidate, os.path.realpath(candidate))):",
        "if True:",
        f"{SEARCH} -k never_taken",
    ),
    (
        "ripgrep doesn't come from a relative PATH",
        "host/search.py",
        "        if os.path.isabs(directory):\n",
        "        if True:\n",
        f"{SEARCH} -k relative_entry",
    ),
)

CLIENT_GUARDS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "a token is needed",
        "edges/mcp/http.py",
        "owner = self._owner(headers)",
        'owner = self._owner(headers) or "anyone"',
        f"{HTTP} -k exact_token",
    ),
    (
        "Host and Origin are checked",
        "edges/mcp/http.py",
        "security_settings=gate.security,",
        "security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),",
        f"{HTTP} -k 'not_on_the_list or same_lists'",
    ),
    (
        "a body has a limit",
        "edges/mcp/http.py",
        "max_request_body_size=LARGEST_MESSAGE,",
        "max_request_body_size=1 << 40,",
        f"{HTTP} -k bad_request",
    ),
    (
        "beyond loopback a token is never optional",
        "edges/mcp/http.py",
        "if not self.tokens and not self.address.is_loopback:",
        "if False:",
        f"{HTTP} -k open_to_others",
    ),
    (
        "every address needs the names it is called by",
        "edges/mcp/http.py",
        "if self.address.is_everywhere and not self.hosts:",
        "if False:",
        f"{HTTP} -k open_to_others",
    ),
    (
        "a token file is the user's alone",
        "host/secrets.py",
        "os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)",
        "os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)",
        f"{HTTP} -k only_its_owner",
    ),
    (
        "a token file that others can read is refused",
        "host/secrets.py",
        "if not stat.S_ISREG(facts.st_mode) or facts.st_mode & 0o077:",
        "if False:",
        f"{HTTP} -k 'only_its_owner or open_to_others'",
    ),
    (
        "HTTP sessions are apart",
        "edges/mcp/desk.py",
        "return session_caller(request.headers[SESSION_HEADER])",
        'return session_caller("one")',
        f"{HTTP} -k state_of_its_own",
    ),
    (
        "a session belongs to the token that began it",
        "edges/mcp/http.py",
        'AccessToken(token="", client_id=owner, scopes=[])',
        'AccessToken(token="", client_id="anyone", scopes=[])',
        f"{HTTP} -k belongs_to_the_token",
    ),
    (
        "an answer is good for the call it was asked for",
        "edges/mcp/visit.py",
        "if round is None or round.called != called:",
        "if round is None:",
        f"{SERVER} -k same_question",
    ),
    (
        "an answer is good once",
        "edges/mcp/visit.py",
        "self._open.pop(ticket, None) if ticket else None",
        "self._open.get(ticket) if ticket else None",
        f"{SERVER} -k good_for_the_call",
    ),
    (
        "a form that was not accepted is a no",
        "edges/mcp/ask.py",
        '    if answer.action != "accept":\n        return False\n',
        "",
        f"{SERVER} -k not_accepted",
    ),
    (
        "a client may not hand over the home directory",
        "edges/opening.py",
        "wide=bool(self.roots)",
        "wide=True",
        f"{SERVER} {STDIO} -k home_directory",
    ),
    (
        "a line has a limit",
        "host/wire.py",
        "if seen > self._limit:",
        "if False:",
        f"{STDIO} -k 100_mb",
    ),
    (
        "a client that reads no answers is not listened to",
        "host/wire.py",
        "while self._is_crowded:",
        "while False:",
        f"{STDIO} -k no_longer_listened",
    ),
    (
        "nothing else reads or writes the wire",
        "host/wire.py",
        "        _divert()\n        yield",
        "        yield",
        f"{STDIO} -k wire",
    ),
    (
        "a session nobody uses is closed",
        "edges/mcp/desk.py",
        "and now - seat.left_at > self.idle:",
        "and False:",
        f"{HTTP} -k nobody_uses",
    ),
)

MACHINE_GUARDS = (*COMMAND_GUARDS, *SEARCH_GUARDS, *CLIENT_GUARDS)
