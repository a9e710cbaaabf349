"""The guards around a call: (name, file, the guard, what stands there without it, the tests that must notice)."""

from __future__ import annotations

ARGUMENTS = "tests/tool/test_arguments.py"
DEPENDS = "tests/tool/test_depends.py"
HOOKS = "tests/call/test_hooks.py"
ASKING = "tests/call/test_asking.py"
RULES = "tests/call/test_rules.py"
RECOGNISER = "tests/call/test_recogniser.py"
STRINGS = "tests/call/test_attacks.py"
CONFIG = "tests/builtin/test_config.py"
FIT = "tests/call/cache/test_fit.py"
STORES = "tests/call/cache/test_stores.py"
BROKEN = "tests/call/cache/test_broken_stores.py"
STORE = "tests/host/test_store.py"
SCANNER = "tests/lisp/test_scanner.py"

TOOL_GUARDS: tuple[tuple[str, str, str, str, str], ...] = (
    # --- arguments ---
    (
        "unknown arguments are refused",
        "tool/arguments.py",
        'None if is_open(schema) else "forbid"',
        '"ignore" if is_open(schema) else "ignore"',
        f"{ARGUMENTS} -k unknown",
    ),
    (
        "the schema says that there are no others",
        "tool/schema.py",
        'out.setdefault("additionalProperties", False)',
        "pass",
        "tests/tool/test_schema.py tests/tool/test_definition.py",
    ),
    (
        "NaN is no JSON",
        "tool/arguments.py",
        'if b"NaN" in text or b"Infinity" in text:',
        "if False:",
        f"{ARGUMENTS} -k 'not_a_json_object or not_clear'",
    ),
    (
        "half a surrogate pair in arguments",
        "tool/arguments.py",
        "return raw.encode()",
        'return raw.encode("utf-8", "replace")',
        f"{ARGUMENTS} -k 'not_a_json_object or not_clear'",
    ),
    (
        "a hundred faults stay a short message",
        "tool/arguments.py",
        "_FAULTS_TOLD = 20",
        "_FAULTS_TOLD = 10**9",
        f"{ARGUMENTS} -k thousand",
    ),
    # --- dependencies ---
    (
        "overrides come before what a tool is bound to",
        "tool/depends.py",
        "for replaced in (self._ctx.overrides, self._bound):",
        "for replaced in (self._bound, self._ctx.overrides):",
        f"{DEPENDS} -k bound",
    ),
    (
        "ready values come first",
        "tool/depends.py",
        "if key.id in self._ctx.given:",
        "if False:",
        f"{DEPENDS} -k ready_values",
    ),
    (
        "what lives for the session holds nothing of one call",
        "tool/depends.py",
        'if key.scope == "session" and need.scope == "call":',
        "if False:",
        f"{DEPENDS} -k can_not_get",
    ),
    (
        "dependencies are closed under cancellation too",
        "tool/depends.py",
        "anyio.move_on_after(CLOSING_SECONDS, shield=True)",
        "anyio.move_on_after(CLOSING_SECONDS)",
        f"{DEPENDS} -k cancelled",
    ),
    (
        "a dependency that needs itself does not wait for itself",
        "tool/depends.py",
        "if self.owner is asyncio.current_task():",
        "if False:",
        f"{DEPENDS} -k needs_itself",
    ),
    # --- what leaves a call ---
    (
        "a fault tells nothing of the host",
        "tool/definition.py",
        'return Internal(f"{what} failed with {kind}{so}; the log has the traceback", details={"type": kind})',
        'return Internal(f"{what} failed with {kind}{so}: {fault}", details={"type": kind})',
        "tests/call/test_run.py -k leaks",
    ),
    (
        "half a surrogate pair in a result",
        "tool/render.py",
        "return TextResult(speakable(value))",
        "return TextResult(value)",
        "tests/tool/test_render.py",
    ),
)

GATE_GUARDS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "nobody to ask is a no",
        "call/hooks.py",
        "        if self._ask is None:\n",
        "        if self._ask is None:\n            return\n        if self._ask is None:\n",
        f"{HOOKS} -k nobody",
    ),
    (
        "only a clear yes is a yes",
        "call/hooks.py",
        'if answer is not True and answer != "always":',
        "if answer is False:",
        f"{HOOKS} -k on_a_yes_only",
    ),
    (
        "always is for what was shown",
        "call/hooks.py",
        "if word.token is not None and word.token in self._always:",
        "if word.token is not None and self._always:",
        f"{HOOKS} -k always",
    ),
    (
        "a hook's odd answer is a no",
        "call/hooks.py",
        "elif word is not None:",
        "elif False:",
        f"{HOOKS} -k anything_else",
    ),
    (
        "a hook that breaks lets nothing through",
        "call/run.py",
        'await answered(gate, f"a hook before `{tool.name}`", session.logger, DID_NOT_RUN)',
        'await __import__("asyncio").gather(gate, return_exceptions=True)',
        f"{HOOKS} -k breaks_lets_nothing",
    ),
    (
        "a hook after a call that breaks holds the answer back",
        "call/run.py",
        "        return refusal(call, error)\n\n\nasync def _walk",
        "        return message\n\n\nasync def _walk",
        f"{HOOKS} -k holds_the_answer_back",
    ),
    (
        "the rules speak before other hooks",
        "builtin/session.py",
        "before=(*_rules(permissions, fs), *before),",
        "before=(*before, *_rules(permissions, fs)),",
        "tests/builtin/test_session.py",
    ),
    (
        "what is asked is shown escaped",
        "call/hooks.py",
        "text = shown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))",
        "text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)",
        f"{ASKING} -k escaped",
    ),
    (
        "rules judge a path as it really is",
        "builtin/session.py",
        "return fs.spellings(subject) if isinstance(subject, WorkPath) else (str(subject),)",
        "return (subject.text,) if isinstance(subject, WorkPath) else (str(subject),)",
        "tests/edges/test_check.py -k requested_and_real",
    ),
    (
        "every spelling of a path is judged",
        "call/rules.py",
        'return strictest([self._judge_one(path) for path in spellings or ("",)])',
        'return self._judge_one((spellings or ("",))[0])',
        f"{RULES} -k every_spelling",
    ),
    (
        "a deny on files wins",
        "call/rules.py",
        "for known in self.denies:",
        "for known in ():",
        f"{RULES} -k deny_wins",
    ),
    (
        "a deny on commands wins",
        "call/shell/lines.py",
        "denied = _first_caught(self.denies, seen)",
        "denied = None",
        f"{RULES} -k 'deny_wins or behind_wrappers'",
    ),
    (
        "rules that deny are read without case",
        "call/globs.py",
        "return text.lower()",
        "return text",
        f"{RULES} -k 'path_patterns or behind_wrappers or deny_wins'",
    ),
    (
        "a workspace's rules are a layer on top",
        "call/rules.py",
        "return strictest((mine, *layers))",
        "return mine",
        f"{RULES} -k narrowing",
    ),
    (
        "paths outside are asked about",
        "call/rules.py",
        'if rule.action == "allow" and self.inside is not None and not self.inside.holds(path):',
        "if False:",
        f"{RULES} -k inside_only",
    ),
)

SHELL_LINE_GUARDS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "a dollar is not plain",
        "call/shell/recogniser.py",
        '_PIECE = r"""[\\w./,:@%+=^-]',
        '_PIECE = r"""[\\w./,:@%+=^$-]',
        f"{RECOGNISER} -k one_character",
    ),
    (
        "a dollar inside double quotes",
        "call/shell/recogniser.py",
        '"(?:[^"\\\\$`]|\\\\[^\\n])*+\\""""',
        '"(?:[^"\\\\`]|\\\\[^\\n])*+\\""""',
        f"{RECOGNISER} {STRINGS}",
    ),
    (
        "redirections are not plain",
        "call/shell/recogniser.py",
        "[\\w./,:@%+=^~-]*+|'",
        "[\\w./,:@%+=^~<>-]*+|'",
        f"{RECOGNISER} {STRINGS}",
    ),
    (
        "lines over the cap are not judged",
        "call/shell/recogniser.py",
        "if size > LONGEST_LINE else None",
        "if size < 0 else None",
        f"{RECOGNISER} -k cap",
    ),
    (
        "characters that can't be shown",
        "call/shell/recogniser.py",
        "problem = _too_long(line) or _odd_character(line)",
        "problem = _too_long(line)",
        f"{RECOGNISER} -k cannot_be_shown",
    ),
    (
        "a tilde may be expanded",
        "call/shell/recogniser.py",
        'problem = _expands_tilde(token["word"]) or (None if words else _not_a_program(word))',
        "problem = None if words else _not_a_program(word)",
        f"{RECOGNISER} {STRINGS}",
    ),
    (
        "assignments and syntax are no programs",
        "call/shell/recogniser.py",
        "(None if words else _not_a_program(word))",
        "None",
        f"{RECOGNISER} {STRINGS}",
    ),
    (
        "what can't be proved is never allowed",
        "call/shell/lines.py",
        '"deny" if self._denies_the_rest() else "ask"',
        '"deny" if self._denies_the_rest() else self.default_action',
        f"{RULES} -k can_not_be_proved",
    ),
    (
        "every command of a line",
        "call/shell/lines.py",
        "strictest([self._judge_command(argv) for argv in dict.fromkeys(proof.commands)])",
        "self._judge_command(proof.commands[0])",
        f"{RULES} -k every_command",
    ),
    (
        "options are known or asked about",
        "call/shell/options.py",
        'return 1, f"`{name}`: not an option known to be harmless"',
        "return 1, None",
        STRINGS,
    ),
    (
        "operands that change things",
        "call/shell/options.py",
        "problem = _operand_problem(program.operands, reading)",
        "problem = None",
        STRINGS,
    ),
    (
        "values that look like options",
        "call/shell/options.py",
        'if value.startswith("-") and len(value) > 1 and not option.any and not _NUMBER.fullmatch(value):',
        "if False:",
        "tests/call/test_each_step_matters.py -k 'look_like or look'",
    ),
    (
        "a second file after uniq's is asked about",
        "call/shell/options.py",
        'if program.operands == "one" and reading.operands and at not in reading.skip:',
        "if False:",
        f"{STRINGS} tests/call/test_tables_against_programs.py",
    ),
    (
        "what can run anything is spelled out",
        "call/shell/commands.py",
        "if name in WRAPPERS or name in INTERPRETERS or name in SHELL_STATE:",
        "if False:",
        f"{RULES} -k run_anything",
    ),
    (
        "a wildcard stands for no option and no path",
        "call/shell/commands.py",
        'if not glob.spelled_out and (word.startswith("-") or "/" in word):',
        "if False:",
        f"{RULES} -k wildcard",
    ),
    (
        "words that leave the workspace",
        "call/shell/commands.py",
        "if _ELSEWHERE.search(word) is None:",
        "if True:",
        STRINGS,
    ),
    (
        "a denied name behind a wrapper",
        "call/shell/denied.py",
        "yield from ((words, start) for start in starts)",
        "pass",
        f"{RULES} -k behind_wrappers",
    ),
    (
        "a denied name in a text for a shell",
        "call/shell/denied.py",
        "if depth < DEEPEST:",
        "if False:",
        f"{RULES} -k 'behind_wrappers or can_not_be_proved'",
    ),
    (
        "a denied subcommand behind options",
        "call/shell/denied.py",
        "if name in BEFORE_SUBCOMMAND:",
        "if False:",
        f"{RULES} -k hide_a_denied",
    ),
    (
        "a text for a shell is proved too",
        "call/shell/lines.py",
        "if (text := unproved_text(argv)) is not None:",
        "if (text := None) is not None:",
        f"{RULES} -k text_that_can_not",
    ),
)

CONFIG_GUARDS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "a workspace's file only narrows",
        "builtin/config.py",
        "_with(config, said, text.path) if text.trusted else _narrowed(config, said, text.path)",
        "_with(config, said, text.path)",
        f"{CONFIG} -k workspace",
    ),
    (
        "a workspace can't loosen the sandbox",
        "builtin/config.py",
        "sandbox=max(config.sandbox, said.sandbox or config.sandbox, key=_strictness),",
        "sandbox=said.sandbox or config.sandbox,",
        f"{CONFIG} -k workspace",
    ),
    (
        "a workspace can't turn reading first off",
        "builtin/config.py",
        "require_read=config.require_read or bool(said.require_read),",
        "require_read=bool(said.require_read),",
        f"{CONFIG} -k workspace",
    ),
    (
        "a workspace can't lift protection",
        "builtin/config.py",
        'protect=(*config.protect, *_patterns(said.protect, "protect", path)),',
        'protect=config.protect if said.protect is None else _patterns(said.protect, "protect", path),',
        f"{CONFIG} -k workspace",
    ),
    (
        "unknown keys stop the start",
        "builtin/config.py",
        'ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)',
        'ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True)',
        f"{CONFIG} -k is_wrong",
    ),
    (
        "rules about unknown tools stop the start",
        "builtin/config.py",
        'if rule.source and name != "*"',
        'if False and name != "*"',
        f"{CONFIG} -k not_there",
    ),
    (
        "a workspace's file is no link",
        "host/config.py",
        "_text(path, follow=False)",
        "_text(path, follow=True)",
        f"{CONFIG} -k no_files",
    ),
)

CACHE_GUARDS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "a session can't read another's outputs",
        "host/store.py",
        '" WHERE o.id = ? AND o.session = ?",\n                (ref_id, session),',
        '" WHERE o.id = ?",\n                (ref_id,),',
        f"{STORES} -k another_session",
    ),
    (
        "outputs expire",
        "host/store.py",
        "if row is None or row[4] + self._ttl < self._now():",
        "if row is None:",
        f"{STORES} -k after_its_time",
    ),
    (
        "the oldest go when the cache is full",
        "host/store.py",
        "if created + self._ttl >= self._now() and total <= self._quota:",
        "if created + self._ttl >= self._now():",
        f"{STORES} -k over_quota",
    ),
    (
        "no output is larger than the cache",
        "host/store.py",
        "if self._size + len(data) > self._quota:",
        "if False:",
        f"{STORES} -k larger_than_the_quota",
    ),
    (
        "equal means equal in every byte",
        "host/store.py",
        "if _same_bytes(fd, other, size):",
        "if True:",
        f"{STORES} -k taken_for_equal",
    ),
    (
        "a directory open to others is closed to them",
        "host/store.py",
        "        os.chmod(path, 0o700)\n",
        "        pass\n",
        f"{STORE} -k closed_to_them",
    ),
    (
        "files of the cache are the user's alone",
        "host/store.py",
        "os.open(self._files / self._name, flags, 0o600)",
        "os.open(self._files / self._name, flags, 0o644)",
        f"{STORE} -k only_the_user",
    ),
    (
        "a file that was harmed is not shown",
        "host/store.py",
        "if os.fstat(fd).st_size != stored.size:",
        "if False:",
        f"{BROKEN} -k harmed",
    ),
    (
        "what is being written is not swept away",
        "host/store.py",
        "            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n            if not self._has_row",
        "            if not self._has_row",
        f"{STORE} -k strays",
    ),
    (
        "a damaged index is made anew",
        "host/store.py",
        "            if not _is_damage(fault):\n                raise\n",
        "            raise\n",
        f"{BROKEN} -k damaged_index",
    ),
    (
        "a store that fails costs no answer",
        "call/cache/cache.py",
        "        except (ToolError, OSError) as fault:\n            self._fail(fault)\n\n    def commit",
        "        except KeyboardInterrupt as fault:\n            self._fail(fault)\n\n    def commit",
        f"{BROKEN} -k 'no_directory or locked'",
    ),
    (
        "what is over the cap is cut",
        "call/cache/cache.py",
        "        if len(data) <= CAP:\n",
        "        if True:\n",
        f"{FIT} -k one_byte",
    ),
    (
        "a pattern for a cached output is no option",
        "host/line_search.py",
        'return [mode, "-e", query.pattern]',
        "return [mode, query.pattern]",
        "tests/call/cache/test_windows_and_grep.py -k dashes",
    ),
    (
        "a search that nobody waits for ends",
        "host/line_search.py",
        "self._stopped = True\n            if self._process is not None and self._process.poll() is None:\n",
        "self._stopped = True\n            if False:\n",
        "tests/host/test_line_search.py",
    ),
)

LISP_GUARDS: tuple[tuple[str, str, str, str, str], ...] = (
    (
        "reading again because of faults has an end",
        "lisp/scanner.py",
        "end = length if patience > 0 else _next_fence(text, at)",
        "end = length",
        f"{SCANNER} -k quadratic",
    ),
    (
        "a broken form ends at the next one",
        "lisp/scanner.py",
        "unit = unit._replace(end=min(end, _next_fence(text, unit.start)))",
        "pass",
        f"{SCANNER} -k unclosed",
    ),
    (
        "units are not held back",
        "lisp/scanner.py",
        "if _in_column_0(text, unit.start) or len(recent) >= RECENT:",
        "if _in_column_0(text, unit.start):",
        f"{SCANNER} -k given_away",
    ),
    (
        "a pattern on Lisp source has a time limit",
        "lisp/patterns.py",
        "self._compiled.search(text, timeout=left, concurrent=True)",
        "self._compiled.search(text)",
        "tests/builtin/test_lisp_read_file.py -k explodes",
    ),
    (
        "lisp-read-file stays in the workspace",
        "builtin/lisp_read_file.py",
        "with fs.within_roots().open_read(path) as file:",
        "with fs.open_read(path) as file:",
        "tests/builtin/test_lisp_read_file.py -k only_the_workspace",
    ),
)

CALL_GUARDS = (*TOOL_GUARDS, *GATE_GUARDS, *SHELL_LINE_GUARDS, *CONFIG_GUARDS, *CACHE_GUARDS, *LISP_GUARDS)
