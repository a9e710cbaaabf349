"""The guards around a call. torture/cuts.py says how a guard is named."""

from __future__ import annotations

from torture.cuts import (
    Guard,
    always,
    call,
    condition,
    drop,
    handler,
    loop,
    never,
    part,
    skip,
    statement,
    text,
    value,
)

ARGUMENTS = "tests/framework/test_arguments.py"
DEPENDS = "tests/framework/test_depends.py"
HOOKS = "tests/call/test_hooks.py"
ASKING = "tests/call/test_asking.py"
RULES = "tests/call/test_rules.py"
RECOGNISER = "tests/call/test_recogniser.py"
STRINGS = "tests/call/test_attacks.py"
LEVEL_TWO = "tests/call/test_level_two.py"
CONFIG = "tests/builtin/test_config.py"
FIT = "tests/call/cache/test_fit.py"
STORES = "tests/call/cache/test_stores.py"
BROKEN = "tests/call/cache/test_broken_stores.py"
STORE = "tests/host/test_store.py"
SCANNER = "tests/lisp/test_scanner.py"

TOOL_GUARDS: tuple[Guard, ...] = (
    # --- arguments ---
    Guard(
        "unknown arguments are refused",
        "framework/arguments.py::Arguments.__init__",
        value("_extra", by="'ignore'"),
        f"{ARGUMENTS} -k unknown",
    ),
    Guard(
        "the schema says that there are no others",
        "framework/schema.py::_SchemaWriter._draft07",
        skip("additionalProperties"),
        "tests/framework/test_schema.py tests/framework/test_definition.py",
    ),
    Guard(
        "NaN is no JSON",
        "framework/arguments.py::_json_text",
        never("NaN"),
        f"{ARGUMENTS} -k 'not_a_json_object or not_clear'",
    ),
    Guard(
        "half a surrogate pair in arguments",
        "framework/arguments.py::_encoded",
        call("encode", by="$on.encode('utf-8', 'replace')"),
        f"{ARGUMENTS} -k 'not_a_json_object or not_clear'",
    ),
    Guard(
        "a hundred faults stay a short message",
        "framework/arguments.py",
        value("_MAX_FAULTS_SHOWN", by="10**9"),
        f"{ARGUMENTS} -k thousand",
    ),
    # --- dependencies ---
    Guard(
        "overrides come before what a tool is bound to",
        "framework/depends.py::Resolver._factory",
        loop("overrides", "_bound", by="reversed($it)"),
        f"{DEPENDS} -k bound",
    ),
    Guard(
        "ready values come first",
        "framework/depends.py::Resolver.value",
        never("provided"),
        f"{DEPENDS} -k ready_values",
    ),
    Guard(
        "what lives for the session holds nothing of one call",
        "framework/depends.py::graph_faults.visit",
        never("session", "call"),
        f"{DEPENDS} -k can_not_get",
    ),
    Guard(
        "dependencies are closed under cancellation too",
        "framework/depends.py::Lifetime.close",
        drop("shield"),
        f"{DEPENDS} -k cancelled",
    ),
    Guard(
        "a dependency that needs itself does not wait for itself",
        "framework/depends.py::_Pending.wait_for",
        never("owner"),
        f"{DEPENDS} -k needs_itself",
    ),
    # --- what leaves a call ---
    Guard(
        "a fault tells nothing of the host",
        "framework/definition.py::_tool_error",
        call("Internal", "kind", by="Internal($0 + f': {fault}', details={'type': kind})"),
        "tests/call/test_run.py -k leaks",
    ),
    Guard(
        "half a surrogate pair in a result",
        "framework/render.py::render",
        call("valid_unicode", "!text", by="$0"),
        "tests/framework/test_render.py",
    ),
)

GATE_GUARDS: tuple[Guard, ...] = (
    Guard(
        "nobody to ask is a no",
        "call/hooks.py::CallGate._ask_user",
        statement("PolicyDenied", "remedy", by="return"),
        f"{HOOKS} -k nobody",
    ),
    Guard(
        "only a clear yes is a yes",
        "call/hooks.py::CallGate._ask_user",
        condition("answer", "True", "always", by="answer is False"),
        f"{HOOKS} -k on_a_yes_only",
    ),
    Guard(
        "always is for what was shown",
        "call/hooks.py::CallGate._ask_user",
        part("_always", "token", by="self._always"),
        f"{HOOKS} -k always",
    ),
    Guard(
        "a hook's odd answer is a no",
        "call/hooks.py::CallGate.check",
        never("verdict", "None", "!isawaitable"),
        f"{HOOKS} -k anything_else",
    ),
    Guard(
        "a hook that breaks lets nothing through",
        "call/run.py::Session.judge",
        call("only_tool_errors", "gate", by="__import__('asyncio').gather($0, return_exceptions=True)"),
        f"{HOOKS} -k breaks_lets_nothing",
    ),
    Guard(
        "a hook after a call that breaks holds the answer back",
        "call/run.py::_answer",
        statement("refusal", "!message", by="return message"),
        f"{HOOKS} -k holds_the_answer_back",
    ),
    Guard(
        "the rules speak before other hooks",
        "builtin/session.py::open_session",
        value("before", by="$it[::-1]"),
        "tests/builtin/test_session.py",
    ),
    Guard(
        "what is asked is shown escaped",
        "call/hooks.py::_argument_text",
        call("escaped", by="$0"),
        f"{ASKING} -k escaped",
    ),
    Guard(
        "rules judge a path as it really is",
        "builtin/session.py::spelling.spell",
        call("spellings", by="($0.text,)"),
        "tests/edges/test_check.py -k requested_and_real",
    ),
    Guard(
        "every spelling of a path is judged",
        "call/rules.py::FileRules.judge",
        call("strictest", by="$0[0]"),
        f"{RULES} -k every_spelling",
    ),
    Guard(
        "a deny on files wins",
        "call/rules.py::FileRules._judge_one",
        loop("denies", by="()"),
        f"{RULES} -k deny_wins",
    ),
    Guard(
        "a deny on commands wins",
        "call/command_lines.py::LineRules._judge_command",
        call("_first_caught", "denies", by="None"),
        f"{RULES} -k 'deny_wins or behind_wrappers'",
    ),
    Guard(
        "rules that deny are read without case",
        "text/fold.py::foldings",
        call("lower", by="$on"),
        f"{RULES} -k 'path_patterns or behind_wrappers or deny_wins'",
    ),
    Guard(
        "a workspace's rules are a layer on top",
        "call/rules.py::Permissions.judge",
        call("strictest", by="mine"),
        f"{RULES} -k narrowing",
    ),
    Guard(
        "paths outside are asked about", "call/rules.py::FileRules._by", never("inside"), f"{RULES} -k inside_only"
    ),
)

SHELL_LINE_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a dollar is not plain",
        "call/shell/recogniser.py",
        value("_PIECE", by=r"r'\$|' + $it"),
        f"{RECOGNISER} -k one_character",
    ),
    Guard(
        "a dollar inside double quotes",
        "call/shell/recogniser.py",
        value("_PIECE", by=r"""r'"[^"\\`]*+"|' + $it"""),
        f"{RECOGNISER} {STRINGS}",
    ),
    Guard(
        "redirections are not plain",
        "call/shell/recogniser.py",
        value("_PIECE", by="'[<>]|' + $it"),
        f"{RECOGNISER} {STRINGS}",
    ),
    Guard(
        "lines over the cap are not judged",
        "call/shell/recogniser.py::_too_long",
        never("LONGEST_LINE"),
        f"{RECOGNISER} -k cap",
    ),
    Guard(
        "characters that can't be shown",
        "call/shell/recogniser.py::line_problem",
        drop("_odd_character"),
        f"{RECOGNISER} -k cannot_be_shown",
    ),
    Guard(
        "a tilde may be expanded",
        "call/shell/recogniser.py::_read",
        drop("_expands_tilde"),
        f"{RECOGNISER} {STRINGS}",
    ),
    Guard(
        "assignments and syntax are no programs",
        "call/shell/recogniser.py::_read",
        drop("_not_a_program"),
        f"{RECOGNISER} {STRINGS}",
    ),
    Guard(
        "what can't be proved is never allowed",
        "call/command_lines.py::LineRules._judge_unproved",
        value("action", by="'deny' if $it == 'deny' else self.default_action"),
        f"{RULES} -k can_not_be_proved",
    ),
    Guard(
        "every command of a line",
        "call/command_lines.py::LineRules.judge",
        call("strictest", by="parts[0]"),
        f"{RULES} -k every_command",
    ),
    Guard("options are known or asked about", "call/shell/options.py::_unlisted", never("*"), STRINGS),
    Guard(
        "operands that change things",
        "call/shell/options.py::problem_with",
        call("_operand_problem", by="None"),
        STRINGS,
    ),
    Guard(
        "values that look like options",
        "call/shell/options.py::_with_value",
        never("_NUMBER"),
        "tests/call/test_each_step_matters.py -k 'look_like or look'",
    ),
    Guard(
        "a second file after uniq's is asked about",
        "call/shell/options.py::_read_options",
        never("one"),
        f"{STRINGS} tests/call/test_tables_against_programs.py",
    ),
    Guard(
        "what can run anything is spelled out",
        "call/shell/commands.py::_untabled_problem",
        never("INTERPRETERS"),
        f"{RULES} -k run_anything",
    ),
    Guard(
        "a wildcard stands for no option and no path",
        "call/shell/commands.py::_strictly",
        part("spelled_out", "startswith", by="False"),
        f"{RULES} -k wildcard",
    ),
    Guard(
        "words that leave the workspace", "call/shell/workspace.py::Workspace.outside", always("_ELSEWHERE"), STRINGS
    ),
    Guard(
        "a denied name behind a wrapper",
        "call/shell/denied.py::sightings",
        skip("start", "starts"),
        f"{RULES} -k behind_wrappers",
    ),
    Guard(
        "a denied name in a text for a shell",
        "call/shell/denied.py::sightings",
        never("DEEPEST"),
        f"{RULES} -k 'behind_wrappers or can_not_be_proved'",
    ),
    Guard(
        "a denied subcommand behind options",
        "call/shell/denied.py::sightings",
        never("BEFORE_SUBCOMMAND"),
        f"{RULES} -k hide_a_denied",
    ),
    Guard(
        "a text for a shell is proved too",
        "call/command_lines.py::LineRules._what_is_unsafe_anyway",
        call("unproved_text", by="None"),
        f"{RULES} -k text_that_can_not",
    ),
)

LEVEL_TWO_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a word that only the shell knows is no program",
        "call/shell/reader.py::_LineReader._program",
        value("word", "_word", by="str($it)"),
        f"{LEVEL_TWO} -k could_run_something_else",
    ),
    Guard(
        "variables that change what runs are not set",
        "call/shell/reader.py::_LineReader._finish",
        never("assignment_problem"),
        f"{LEVEL_TWO} -k 'could_run_something_else or only_changes'",
    ),
    Guard(
        "modules of elsewhere are not put before the project's",
        "call/command_lines.py::LineRules._may_be_told",
        drop("outside"),
        f"{LEVEL_TWO} -k where_its_modules_are",
    ),
    Guard(
        "variables in a text for a shell count too",
        "call/shell/denied.py::_read",
        drop("is_left_to_rules"),
        f"{LEVEL_TWO} -k where_its_modules_are",
    ),
    Guard(
        "variables that are calculated are numbers",
        "call/shell/reader.py::read_script",
        never("variables"),
        f"{LEVEL_TWO} -k could_run_something_else",
    ),
    Guard(
        "a descriptor that is closed ends before a word",
        "call/shell/reader.py::_LineReader._redirect",
        never("startswith", "-"),
        f"{LEVEL_TWO} -k could_run_something_else",
    ),
    Guard(
        "no command follows a text inside a substitution",
        "call/shell/reader.py::_LineReader._pipeline",
        never("has_heredoc"),
        f"{LEVEL_TWO} -k could_run_something_else",
    ),
    Guard(
        "no text is inside other commands of a substitution",
        "call/shell/reader.py::_LineReader._heredoc",
        never("depth"),
        f"{LEVEL_TWO} -k could_run_something_else",
    ),
    Guard(
        "a shell is not fed a text",
        "call/command_lines.py::LineRules._read",
        never("is_fed"),
        f"{STRINGS} -k however_its_words",
    ),
    Guard(
        "a file that the shell writes is judged like Write",
        "call/line_places.py::LinePlaces.redirection",
        never("way"),
        f"{LEVEL_TWO} -k judged_like_write",
    ),
    Guard(
        "a word that may be an option is asked about",
        "call/shell/options.py::_read_unknown",
        never("may_be_option"),
        f"{LEVEL_TWO} -k may_be_an_option",
    ),
    Guard(
        "a program that only looks is not the workspace's",
        "call/program_problems.py::program_problem",
        never("inside", "only_looks"),
        f"{LEVEL_TWO} -k file_it_resolves_to",
    ),
    Guard(
        "a program that another one runs is not the workspace's",
        "call/command_lines.py::LineRules._judge_run",
        never("is_shadowed"),
        f"{LEVEL_TWO} -k another_program_runs",
    ),
    Guard(
        "aliases, traps and functions shadow no program",
        "call/command_lines.py::LineRules._what_is_unsafe_anyway",
        never("SHELL_STATE"),
        f"{STRINGS} -k however_its_words",
    ),
    Guard(
        "only an environment inside is activated",
        "call/line_places.py::LinePlaces.as_activated",
        condition("inside", "climbs", by="True"),
        f"{LEVEL_TWO} -k activated",
    ),
)

CONFIG_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a workspace's file only narrows",
        "builtin/config.py::load_config",
        call("_narrowed", by="_with($0, $1, $2)"),
        f"{CONFIG} -k workspace",
    ),
    Guard(
        "a workspace can't loosen the sandbox",
        "builtin/config.py::_narrowed",
        call("max", "sandbox", by="$1"),
        f"{CONFIG} -k workspace",
    ),
    Guard(
        "a workspace can't turn reading first off",
        "builtin/config.py::_narrowed",
        drop("config", "require_read"),
        f"{CONFIG} -k workspace",
    ),
    Guard(
        "a workspace can't lift protection",
        "builtin/config.py::_narrowed",
        value("protect", by="$it[len(config.protect):] or $it"),
        f"{CONFIG} -k workspace",
    ),
    Guard(
        "unknown keys stop the start",
        "builtin/config_tables.py::_Table",
        value("extra", by="'ignore'"),
        f"{CONFIG} -k is_wrong",
    ),
    Guard(
        "rules about unknown tools stop the start",
        "builtin/config.py::refuse_unknown_tools",
        never("effect:"),
        f"{CONFIG} -k not_there",
    ),
    Guard(
        "a workspace's file is no link",
        "host/program/config.py::config_texts",
        value("follow", "False", by="True"),
        f"{CONFIG} -k no_files",
    ),
)

CACHE_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a session can't read another's outputs",
        "host/stores/store.py::EmbeddedStore.find",
        text("o.session = ?", by="? IS NOT NULL"),
        f"{STORES} -k another_session",
    ),
    Guard("outputs expire", "host/stores/store.py::EmbeddedStore.find", drop("_now"), f"{STORES} -k after_its_time"),
    Guard(
        "the oldest go when the cache is full",
        "host/stores/store.py::EmbeddedStore._expire",
        drop("_quota"),
        f"{STORES} -k over_quota",
    ),
    Guard(
        "no output is larger than the cache",
        "host/stores/store.py::BlobWriter.write",
        never("_quota"),
        f"{STORES} -k larger_than_the_quota",
    ),
    Guard(
        "equal means equal in every byte",
        "host/stores/store.py::EmbeddedStore._twin",
        always("_same_bytes"),
        f"{STORES} -k taken_for_equal",
    ),
    Guard(
        "a directory open to others is closed to them",
        "host/program/places.py::private_directory",
        skip("chmod"),
        f"{STORE} -k closed_to_them",
    ),
    Guard(
        "files of the cache are the user's alone",
        "host/stores/store.py::BlobWriter._to_file",
        call("open", by="os.open($0, $1, 0o644)"),
        f"{STORE} -k only_the_user",
    ),
    Guard(
        "a file that was harmed is not shown",
        "host/stores/store.py::EmbeddedStore._open",
        never("st_size"),
        f"{BROKEN} -k harmed",
    ),
    Guard(
        "what is being written is not swept away",
        "host/stores/store.py::EmbeddedStore._remove_stray",
        skip("flock"),
        f"{STORE} -k strays",
    ),
    Guard(
        "a damaged index is made anew",
        "host/stores/database.py::Database._open_or_renew",
        always("_is_damage"),
        f"{BROKEN} -k damaged_index",
    ),
    Guard(
        "a store that fails costs no answer",
        "call/cache/cache.py::_Writing.write",
        handler("OSError", by="KeyboardInterrupt"),
        f"{BROKEN} -k 'no_directory or locked'",
    ),
    Guard(
        "what is over the cap is cut",
        "call/cache/cache.py::OutputCache.fit",
        always("data", "CAP"),
        f"{FIT} -k one_byte",
    ),
    Guard(
        "a pattern for a cached output is no option",
        "host/search/line_search.py::_pattern",
        drop("-e"),
        "tests/call/cache/test_windows_and_grep.py -k dashes",
    ),
    Guard(
        "a search that nobody waits for ends",
        "host/search/line_search.py::LineSearch.stop",
        never("_process"),
        "tests/host/test_line_search.py",
    ),
)

LISP_GUARDS: tuple[Guard, ...] = (
    Guard(
        "reading again because of faults has an end",
        "lisp/scanner.py::scan",
        always("rescan_budget"),
        f"{SCANNER} -k quadratic",
    ),
    Guard(
        "a broken form ends at the next one",
        "lisp/scanner.py::scan",
        skip("_replace", "_next_fence"),
        f"{SCANNER} -k unclosed",
    ),
    Guard("units are not held back", "lisp/scanner.py::scan", drop("RECENT"), f"{SCANNER} -k given_away"),
    Guard(
        "a pattern on Lisp source has a time limit",
        "lisp/patterns.py::Pattern.search",
        drop("timeout"),
        "tests/builtin/test_lisp_read_file.py -k explodes",
    ),
    Guard(
        "lisp-read-file stays in the workspace",
        "builtin/lisp_read_file.py::lisp_read_file",
        call("within_roots", by="$on"),
        "tests/builtin/test_lisp_read_file.py -k only_the_workspace",
    ),
)

QUEUE = "tests/host/test_questions.py"
QUEUES = "tests/host/test_question_queues.py"
APPROVALS = "tests/edges/mcp/test_approvals.py"
CONSOLE = "tests/edges/console/test_console.py"
RUNNING = "tests/edges/console/test_running.py"
SELF = "tests/edges/test_approvals_walls.py -k 'cant_answer_nor_open and {}'"

PERSON_GUARDS: tuple[Guard, ...] = (
    # --- the queue of questions ---
    Guard(
        "an answer counts once",
        "host/questions/queue.py::QuestionQueue._put",
        call("link", by="os.replace($0, $1)"),
        f"{QUEUES} -k 'once or exactly_one'",
    ),
    Guard(
        "the questions of a server that is gone are over",
        "host/questions/queue.py::QuestionQueue._is_open",
        call("is_alive", by="True"),
        f"{QUEUE} -k killed",
    ),
    Guard(
        "a verdict that was not offered does not count",
        "host/questions/question.py::refuse_unoffered",
        never("widths"),
        QUEUES,
    ),
    Guard(
        "an answer that somebody else wrote into the store is no answer",
        "host/questions/redis_questions.py::RedisQuestions._answer",
        never("compare_digest"),
        f"{QUEUES} -k forged",
    ),
    Guard(
        "a question that somebody else wrote into the store is none",
        "host/questions/redis_questions.py::RedisQuestions._stored",
        drop("compare_digest"),
        f"{QUEUES} -k 'changed_after or foreign'",
    ),
    Guard(
        "the questions of another machine's server that is gone are over",
        "host/questions/redis_questions.py::RedisQuestions._find",
        never("_up"),
        f"{QUEUES} -k gone",
    ),
    # --- what is approved is what was shown ---
    Guard(
        "a question is about one change of one file",
        "edges/approvals.py::Approvals._asking",
        value("parts", by="(question.tool.name, arguments, shown)"),
        f"{APPROVALS} -k changed_since",
    ),
    Guard(
        "two calls at the same time are two questions",
        "edges/approvals.py::Approvals._attach",
        drop("attached"),
        f"{APPROVALS} -k two_calls",
    ),
    Guard(
        "an approval is used by one server",
        "edges/approvals.py::Approvals._may_use",
        call("take", by="True"),
        "tests/edges/test_approvals_servers.py -k 'share_no_yes or only_there'",
    ),
    Guard(
        "an approval is used up by the call that runs",
        "edges/approvals.py::Approvals.ask",
        skip("_forget"),
        f"{APPROVALS} -k attaches",
    ),
    Guard(
        "a yes is about the diff that was seen",
        "call/hooks.py::CallGate.check",
        never("is_outdated"),
        f"{APPROVALS} -k changed_meanwhile",
    ),
    Guard(
        "a call that nobody was asked about only waits",
        "call/run.py::_value",
        never("work"),
        "tests/builtin/test_bash_stays.py -k nobody_was_asked",
    ),
    Guard(
        "only the plain command is waited for without a question",
        "builtin/bash.py::_joins",
        value("is_plain", by="True"),
        f"{APPROVALS} -k without_another_question",
    ),
    Guard(
        "the reason of a no is one line",
        "edges/approvals.py::_answered",
        call("escaped", by="$0"),
        f"{APPROVALS} -k meets_the_caller",
    ),
    # --- no agent answers its own question ---
    Guard(
        "commands in bubblewrap see no question and no link",
        "host/shell/walls.py::_wanted",
        never("secret"),
        SELF.format("bwrap"),
    ),
    Guard(
        "commands under Landlock see no question and no link",
        "host/shell/walls.py::Walls.hidden",
        never("secret"),
        SELF.format("landlock"),
    ),
    Guard(
        "commands may not use the console",
        "edges/console/app.py::for_people",
        never("is_command"),
        SELF.format("bwrap"),
    ),
    Guard(
        "a command that hides is not taken for a person",
        "host/shell/callers.py::_is_held_by_person",
        statement("_may_forward", by="return True"),
        SELF.format("bwrap"),
    ),
    # --- the console ---
    Guard(
        "a link opens the console once",
        "edges/console/access.py::ConsoleAccess.redeem",
        skip("difference_update"),
        f"{CONSOLE} -k link_opens",
    ),
    Guard(
        "the console is at its own host only",
        "edges/console/access.py::ConsoleAccess.refusal",
        never("hosts", "!origin"),
        f"{CONSOLE} -k another_host",
    ),
    Guard(
        "another site may not use the console",
        "edges/console/access.py::ConsoleAccess.refusal",
        never("removeprefix"),
        f"{CONSOLE} -k another_host",
    ),
    Guard(
        "the console needs its cookie",
        "edges/console/access.py::ConsoleAccess.refusal",
        never("_cookie"),
        f"{CONSOLE} -k without_the_cookie",
    ),
    Guard(
        "the cookie alone gets no data",
        "edges/console/access.py::ConsoleAccess.data_refusal",
        never("_secret"),
        f"{CONSOLE} -k 'cookie_alone and sessions'",
    ),
    Guard(
        "changes are made from the page",
        "edges/console/access.py::ConsoleAccess.refusal",
        never("method"),
        f"{CONSOLE} {RUNNING} -k 'change_needs or ended_from'",
    ),
    Guard(
        "colours show nothing that the answer hides",
        "host/record/record.py::Record.keep_answer",
        never("startswith"),
        f"{CONSOLE} -k colours_show_nothing",
    ),
    Guard(
        "the shells of a process that died are not shown",
        "host/shell/board.py::RunningShells.all",
        call("is_alive", by="True"),
        f"{RUNNING} -k until_it_dies",
    ),
    Guard(
        "pages that look at once read each line once",
        "host/record/calls.py::CallsFile.__init__",
        value("_lock", by="threading.Semaphore(1000)"),
        f"{CONSOLE} -k look_at_once",
    ),
)

CALL_GUARDS = (
    *TOOL_GUARDS,
    *GATE_GUARDS,
    *SHELL_LINE_GUARDS,
    *LEVEL_TWO_GUARDS,
    *CONFIG_GUARDS,
    *CACHE_GUARDS,
    *LISP_GUARDS,
    *PERSON_GUARDS,
)
