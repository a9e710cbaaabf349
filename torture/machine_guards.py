"""The guards around commands, searches and clients. torture/cuts.py says how a guard is named."""

from __future__ import annotations

from torture.cuts import Guard, always, call, condition, drop, loop, never, part, skip, statement, text, value

PROCESS = "tests/host/test_process.py"
SANDBOX = "tests/host/test_sandbox.py"
SEARCH = "tests/host/test_search.py"
WALLS = "tests/host/test_walls.py"
TERMINAL = "tests/text/test_terminal.py"
ASTRAY = "tests/host/test_astray.py"
SETTINGS = "tests/host/test_git_settings.py"
HTTP = "tests/edges/mcp/test_http.py"
SERVER = "tests/edges/mcp/test_server.py"
STDIO = "tests/edges/mcp/test_stdio.py"

COMMAND_GUARDS: tuple[Guard, ...] = (
    # --- the sandbox ---
    Guard(
        "commands can't change the priority of other processes",
        "host/shell/broker.py::_refusing_others",
        condition("sees_others", by="kind == 0"),
        f"{SANDBOX} -k slow_down_the",
    ),
    Guard(
        "a command outside the sandbox has the user's own temporary directory",
        "host/shell/brokers.py::Brokers.tmpdir",
        never("_outside"),
        "tests/host/test_outside.py -k rewrite",
    ),
    Guard(
        "commands run inside bubblewrap",
        "host/shell/broker_connection.py::_inside",
        always("bwrap"),
        f"{SANDBOX} -k outside_the_scope",
    ),
    Guard(
        "commands run under Landlock",
        "host/shell/broker.py::_become_broker",
        (skip("drop_powers"), skip("restrict")),
        f"{SANDBOX} -k outside_the_scope",
    ),
    Guard(
        "protected names are read-only for commands",
        "host/shell/sandbox.py::_mounted",
        always("--ro-bind"),
        f"{SANDBOX} -k read_only_under",
    ),
    Guard(
        "a repository outside the roots is open to its worktree",
        "host/shell/walls.py::_repository",
        skip("directory", "write"),
        f"{WALLS} -k lies_outside",
    ),
    Guard(
        "the directories above a protected place can't be moved",
        "host/shell/walls.py::walls_of",
        skip("setdefault", "above"),
        f"{WALLS} -k above_a_protected",
    ),
    Guard(
        "every mount is what was seen",
        "host/shell/broker.py::_misplaced",
        never("mounted"),
        f"{WALLS} -k changed_while",
    ),
    Guard(
        "settings that run programs are not taken over",
        "host/shell/git_settings.py::GitSettings._taken_over",
        value("wanted", "judged", by="private"),
        f"{SETTINGS} -k never_stay",
    ),
    Guard(
        "a configuration is written in place",
        "host/shell/git_settings.py::_replaced",
        skip("pwrite"),
        f"{SETTINGS} -k that_was_there",
    ),
    Guard(
        "a command that runs until the end is looked after",
        "host/shell/brokers.py::Brokers._last_look",
        never("suspect"),
        f"{SETTINGS} -k session_ends",
    ),
    Guard(
        "the last look calls nothing that its file names",
        "host/shell/unfinished.py::_OwnClasses.find_class",
        never("isinstance"),
        "tests/host/test_late.py -k names_no_program",
    ),
    Guard(
        "descriptors of the machine outside are closed",
        "host/shell/broker.py::serve_inside",
        skip("_close_all_but"),
        f"{WALLS} -k no_descriptor",
    ),
    Guard(
        "abstract sockets are out of reach",
        "host/kernel/landlock.py::_scopes",
        drop("_SCOPE_ABSTRACT_SOCKETS"),
        f"{WALLS} -k abstract",
    ),
    Guard(
        "sockets of other programs are out of reach",
        "host/shell/walls.py::_sockets",
        loop("foreign_sockets", by="()"),
        f"{WALLS} -k sockets_of_other",
    ),
    Guard(
        "a root is the directory it was",
        "host/files/scope.py::require_unmoved",
        drop("identity"),
        f"{WALLS} -k 'replaced or inner_root'",
    ),
    Guard(
        "late names are taken out",
        "host/shell/late.py::_taken",
        never("_is_known"),
        f"{WALLS} -k waits_in_quarantine",
    ),
    Guard(
        "no remote leads into a git directory",
        "host/files/gitremotes.py::is_unjudged",
        drop("is_inside_repository"),
        f"{ASTRAY} -k lead_astray",
    ),
    Guard(
        "no remote leads to where nobody looks",
        "host/files/gitremotes.py::is_unjudged",
        drop("is_below", "unseen"),
        f"{ASTRAY} -k lead_astray",
    ),
    Guard(
        "no remote leads to a file that leads elsewhere",
        "host/shell/late.py::_git_files",
        never("git_file_text"),
        f"{ASTRAY} -k as_long_as_it_leads",
    ),
    Guard(
        "what lies behind a link is judged",
        "host/files/strays.py::Strays.behind",
        never("_is_unjudged"),
        f"{ASTRAY} -k later_session",
    ),
    Guard(
        "files of remotes are instructions",
        "host/files/gitdirs.py::INSTRUCTIONS",
        drop("REMOTES"),
        f"{ASTRAY} -k remotes_in_files",
    ),
    Guard(
        "a directory of the user's does not become a repository",
        "host/shell/late.py::_protected_after",
        never("turned", "kind"),
        "tests/host/test_late.py -k not_turned",
    ),
    Guard(
        "what waits in quarantine is a copy",
        "host/shell/quarantine.py::take_out",
        statement("detach", by="os.rename(taken, taken.with_name(_CONTENT))"),
        "tests/host/test_late.py -k looks_at_in_quarantine",
    ),
    Guard(
        "no .git file leads where nobody looks",
        "host/shell/late.py::undo_late_names",
        call("_judged_part", by="$0"),
        "tests/host/test_late.py -k nobody_looked_at",
    ),
    Guard(
        "a root that was moved is looked at where it is",
        "host/shell/brokers.py::Brokers._look_at_moved",
        skip("state", "look"),
        "tests/host/test_moved_root.py",
    ),
    Guard(
        "without a quarantine a name becomes another",
        "host/shell/quarantine.py::_set_aside",
        skip("rename"),
        "tests/host/test_late.py -k without_a_quarantine",
    ),
    Guard(
        "a strategy of a command is taken out",
        "host/shell/late.py::_steps",
        never("_STRATEGY"),
        "tests/host/test_late.py -k in_progress_runs",
    ),
    Guard(
        "no command traces what runs commands",
        "host/shell/broker.py::serve",
        skip("_hide"),
        f"{WALLS} -k traces_what_runs",
    ),
    Guard(
        "what is secret of ours is hidden from commands",
        "host/shell/walls.py::_wanted",
        never("secret"),
        f"{WALLS} -k secret_ones_not_read",
    ),
    Guard(
        "encodings keep ASCII text",
        "host/files/encodings.py",
        never("_keeps_ascii"),
        "tests/host/test_text.py -k 'utf-7 or hz'",
    ),
    Guard(
        "connections without a request have a limit",
        "edges/mcp/connections.py::HttpConnection._await_request",
        never("MOST_WAITING"),
        f"{HTTP} -k waited_longest",
    ),
    Guard(
        "each workspace has its own caches",
        "host/shell/caches.py::_folder_name",
        value("root", by='b""'),
        f"{WALLS} -k caches_of_its_own",
    ),
    Guard(
        "a new repository is examined",
        "host/shell/late.py::_taken",
        skip("_examined"),
        f"{WALLS} -k leaves_makes_git",
    ),
    Guard("a replaced link is put back", "host/shell/late.py::_taken", skip("symlink"), f"{WALLS} -k put_back"),
    Guard(
        "a repository outside is opened only if it knows the worktree",
        "host/files/gitdirs.py::common_directory",
        always("here"),
        f"{WALLS} -k does_not_know",
    ),
    Guard(
        "commands can't change what we run",
        "host/shell/walls.py::_wanted",
        never("is_below", "own"),
        f"{WALLS} -k no_command_can_change",
    ),
    Guard(
        "file tools can't change what we run",
        "host/files/closed_places.py::ClosedPlaces.protected",
        never("OWN_CODE"),
        f"{WALLS} -k no_file_tool",
    ),
    Guard(
        "the users caches stay as they are",
        "host/shell/sandbox.py::bwrap_arguments",
        loop("caches", "over", by="[(place, place) for _, place in $it]"),
        f"{WALLS} -k untouched",
    ),
    Guard(
        "denied places are hidden from commands",
        "host/shell/sandbox.py::_mounted",
        call("_hidden", by="[]"),
        f"{SANDBOX} -k denied_places",
    ),
    Guard("/run is masked", "host/shell/sandbox.py::_base", skip("--tmpfs", "/run"), f"{SANDBOX} -k hides_run"),
    Guard(
        "walls are built anew when a repository appears",
        "host/shell/broker_connection.py::BrokerConnection.holds",
        part("walls", by="True"),
        f"{SANDBOX} -k 'repository_made or replaced'",
    ),
    Guard("require means require", "host/shell/sandbox.py::choose", never("require"), f"{SANDBOX} -k require"),
    Guard(
        "programs don't come from the workspace",
        "host/program/programs.py::find_program",
        drop("is_below"),
        f"{SANDBOX} -k never_taken",
    ),
    # --- nothing is left ---
    Guard(
        "orphans come to the supervisor",
        "host/shell/broker.py::become_subreaper",
        skip("prctl"),
        f"{PROCESS} -k 'forks or daemon'",
    ),
    Guard(
        "at its time limit everything of a command is ended",
        "host/shell/broker.py::Supervisor._tick",
        call("sweep", by="[]"),
        f"{PROCESS} -k 'ignores'",
    ),
    Guard(
        "a command that nobody waits for is ended",
        "host/shell/broker.py::Supervisor.watch",
        skip("sweep"),
        f"{PROCESS} -k line_is_cut",
    ),
    Guard(
        "the warden ends what a killed server left",
        "host/shell/broker.py::warden",
        skip("sweep"),
        f"{PROCESS} -k killed_server",
    ),
    Guard(
        "what a killed supervisor left is ended",
        "host/shell/broker.py::_bury",
        skip("_end_orphans"),
        f"{PROCESS} -k kills_its_supervisor",
    ),
    Guard(
        "one that forks faster than a list of processes is read is found",
        "host/shell/broker.py::sweep",
        drop("newest"),
        f"{PROCESS} -k no_list_of_processes",
    ),
    Guard(
        "a background flood has a cap",
        "host/shell/broker.py::Supervisor._drain",
        statement("_write_all", by="_write_all(self.spool, data)"),
        f"{PROCESS} -k stops_growing",
    ),
    # --- what a command sees, and what is seen of it ---
    Guard(
        "variables by allow-list",
        "host/shell/environment.py::command_environment",
        drop("_matches"),
        f"{PROCESS} -k allow_list",
    ),
    Guard(
        "secrets never, even when allowed",
        "host/shell/environment.py::command_environment",
        drop("_harmless"),
        f"{PROCESS} -k allow_list",
    ),
    Guard(
        "a listing that failed for want of descriptors is not an empty one",
        "host/files/sealed.py::_listed",
        never("is_shortage"),
        "tests/host/test_shortages.py -k taken_for_gone",
    ),
    Guard(
        "a shortage is no lost broker",
        "host/shell/shells.py::Shells._start",
        never("is_shortage"),
        "tests/host/test_shortages.py -k shortage_of_descriptors",
    ),
    Guard(
        "PATH is absolute",
        "host/shell/environment.py::command_path",
        drop("startswith"),
        "tests/host/test_environment.py",
    ),
    Guard(
        "a bare repository runs nothing",
        "host/shell/environment.py",
        value("GIT_CONFIG_COUNT", by="'0'"),
        f"{PROCESS} -k allow_list",
    ),
    Guard(
        "no descriptor reaches a command",
        "host/shell/broker.py::_receive",
        call("set_inheritable", by="os.set_inheritable($0, True)"),
        f"{PROCESS} -k descriptor",
    ),
    Guard(
        "a command has no input",
        "host/shell/broker.py::_spawn",
        text("/dev/null", by="/etc/passwd"),
        f"{PROCESS} -k no_input",
    ),
    Guard("escape sequences are stripped", "text/terminal.py::plain", skip("ESCAPES"), TERMINAL),
    Guard(
        "controls and direction overrides are stripped",
        "text/terminal.py::plain",
        call("replaced", by="$0"),
        TERMINAL,
    ),
)

SEARCH_GUARDS: tuple[Guard, ...] = (
    Guard(
        "ripgrep knows nothing of the user's configuration",
        "host/search/running.py::run_rg.start",
        (drop("env"), part("rg", "arguments", by="[word for word in $it if word != '--no-config']")),
        f"{SEARCH} -k environment_and_config",
    ),
    Guard(
        "a pattern is no option",
        "host/search/patterns.py::matching_arguments",
        drop("-e"),
        "tests/builtin/test_grep.py -k 'dash or becomes_an_option'",
    ),
    Guard(
        "a search ends at its deadline",
        "host/search/running.py::_drain",
        value("left", by="max($it, 0.1)"),
        f"{SEARCH} -k deadline",
    ),
    Guard(
        "a stopped search ends",
        "host/search/stop.py::Stop.stop",
        never("_process"),
        f"{SEARCH} -k cancelling_the_caller",
    ),
    Guard(
        "ripgrep reads beneath the root only",
        "host/search/running.py::run_rg",
        never("confined"),
        f"{SEARCH} -k 'swapped or swaps'",
    ),
    Guard(
        "what an unconfined ripgrep reached through links",
        "host/search/grep.py::_trusted",
        always("is_reached_without_links"),
        f"{SEARCH} -k last_look",
    ),
    Guard(
        "ripgrep doesn't come from the workspace",
        "host/search/ripgrep.py::_candidates",
        always("is_below"),
        f"{SEARCH} -k never_taken",
    ),
    Guard(
        "ripgrep doesn't come from a relative PATH",
        "host/search/ripgrep.py::_candidates",
        always("isabs", "directory"),
        f"{SEARCH} -k relative_entry",
    ),
)

CLIENT_GUARDS: tuple[Guard, ...] = (
    Guard(
        "a token is needed",
        "edges/mcp/http.py::TokenGuard._check",
        call("_owner", by="$it or 'anyone'"),
        f"{HTTP} -k exact_token",
    ),
    Guard(
        "Host and Origin are checked",
        "edges/mcp/http.py::serve_http",
        value("security_settings", by="TransportSecuritySettings(enable_dns_rebinding_protection=False)"),
        f"{HTTP} -k 'not_on_the_list or same_lists'",
    ),
    Guard(
        "a body has a limit",
        "edges/mcp/http.py::serve_http",
        value("max_request_body_size", by="1 << 40"),
        f"{HTTP} -k bad_request",
    ),
    Guard(
        "beyond loopback a token is never optional",
        "edges/mcp/http.py::Access.__post_init__",
        never("is_loopback"),
        f"{HTTP} -k open_to_others",
    ),
    Guard(
        "every address needs the names it is called by",
        "edges/mcp/http.py::Access.__post_init__",
        never("is_everywhere"),
        f"{HTTP} -k open_to_others",
    ),
    Guard(
        "a token file is the user's alone",
        "host/program/secrets.py::_make_token",
        call("open", "O_CREAT", by="os.open($0, $1, 0o644)"),
        f"{HTTP} -k only_its_owner",
    ),
    Guard(
        "a token file that others can read is refused",
        "host/program/token_file.py::token_text",
        never("S_ISREG"),
        f"{HTTP} -k 'only_its_owner or open_to_others'",
    ),
    Guard(
        "a token file that lost the end of its last line is half-written",
        "host/program/token_file.py::TokenFile.read",
        never("endswith"),
        "tests/host/test_token_file.py -k half_written",
    ),
    Guard(
        "a token that is gone ends its calls",
        "edges/mcp/http.py::TokenGuard._forget",
        skip("request", "cancel"),
        "tests/edges/mcp/test_tokens.py -k under_way",
    ),
    Guard(
        "who may only read has no other tool",
        "edges/settings.py::SessionSettings.only_reading",
        always("effect"),
        "tests/edges/mcp/test_tokens.py -k people_differ",
    ),
    Guard(
        "an access token for another server is not ours",
        "edges/mcp/oauth.py::Verifier._checked",
        value("audience", "resource", by="jwt.decode(token, options={'verify_signature': False})['aud']"),
        "tests/edges/mcp/test_oauth.py -k bad_tokens",
    ),
    Guard(
        "a key signs what it is for",
        "edges/mcp/oauth.py::Verifier.verify_token",
        never("kty"),
        "tests/edges/mcp/test_oauth.py -k bad_tokens",
    ),
    Guard(
        "unknown keys are not asked for without end",
        "edges/mcp/oauth.py::Keys._refresh",
        never("REFETCH_AFTER"),
        "tests/edges/mcp/test_oauth.py -k once_in_a_while",
    ),
    Guard(
        "HTTP sessions are apart",
        "edges/mcp/session_names.py::session_key",
        call("key_of_mcp_session", by="key_of_mcp_session('one')"),
        f"{HTTP} -k state_of_its_own",
    ),
    Guard(
        "a session runs on one server at a time",
        "host/stores/embedded_sessions.py::EmbeddedSessions.lease",
        never("_holds"),
        "tests/host/test_session_stores.py -k only_one_server",
    ),
    Guard(
        "what a server saves under an old fence is refused",
        "host/stores/embedded_sessions.py::EmbeddedSessions.save",
        never("rowcount"),
        "tests/host/test_session_stores.py -k is_silent",
    ),
    Guard(
        "a stored path outside the roots does not count as read",
        "builtin/shared_state.py::SharedState._restored",
        never("_is_inside"),
        "tests/builtin/test_shared_state.py -k ignored",
    ),
    Guard(
        "a session belongs to the token that began it",
        "edges/mcp/http.py::_user",
        value("client_id", by="'anyone'"),
        f"{HTTP} -k belongs_to_the_token",
    ),
    Guard(
        "an answer is good for the call it was asked for",
        "edges/mcp/request.py::PendingQuestions.resume",
        drop("call_digest"),
        f"{SERVER} -k same_question",
    ),
    Guard(
        "an answer is good once",
        "edges/mcp/request.py::PendingQuestions.resume",
        call("pop", by="$on.get($0)"),
        f"{SERVER} -k good_for_the_call",
    ),
    Guard(
        "a form that was not accepted is a no",
        "edges/mcp/ask.py::_answer_in",
        never("accept"),
        f"{SERVER} -k not_accepted",
    ),
    Guard(
        "a client may not hand over the home directory",
        "edges/settings.py::SessionSettings._scope",
        value("wide", by="True"),
        f"{SERVER} {STDIO} -k home_directory",
    ),
    Guard("a line has a limit", "host/program/wire.py::Wire.lines", never("seen", "_limit"), f"{STDIO} -k 100_mb"),
    Guard(
        "a client that reads no answers is not listened to",
        "host/program/wire.py::Wire.room",
        never("is_crowded", "!_ended"),
        f"{STDIO} -k no_longer_listened",
    ),
    Guard(
        "requests under way have a limit",
        "edges/mcp/stdio.py::_Outgoing.track",
        never("MAX_PENDING_REQUESTS"),
        f"{STDIO} -k too_many",
    ),
    Guard(
        "nothing else reads or writes the wire",
        "host/program/wire.py::claim_wire",
        skip("_divert"),
        f"{STDIO} -k wire",
    ),
    Guard(
        "a session nobody uses is closed",
        "edges/mcp/sessions.py::Sessions.close_idle",
        never("last_used"),
        f"{HTTP} -k nobody_uses",
    ),
)

MACHINE_GUARDS = (*COMMAND_GUARDS, *SEARCH_GUARDS, *CLIENT_GUARDS)
