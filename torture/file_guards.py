"""The guards around files. torture/cuts.py says how a guard is named."""

from __future__ import annotations

from torture.cuts import Guard, always, call, condition, drop, never, part, skip, statement, value

BENEATH = "tests/host/test_beneath.py"
WRITING = "tests/host/test_writing.py"
ATTACKS = "tests/host/test_attacks.py"
PATHS = "tests/host/test_paths.py"
PROBE = "tests/host/test_probe.py"
SCOPE = "tests/host/test_scope.py"
TEXT = "tests/host/test_text.py"
LINES = "tests/host/test_lines.py"

# It still refuses the link that openat2 is tried with at the start, or it would not be used at all.
OPENED_ANYWHERE = """
fd = os.open(path, DIRECTORY_FLAGS, dir_fd=root_fd)
if path == "link":
    raise OSError(errno.EXDEV, "")
"""
FOUND_ANYWHERE = 'found = (Root("/", "/", os.open("/", DIRECTORY_FLAGS), -1, writable=True), absolute[1:])'
WRITTEN_IN_PLACE = """
if old is not None:
    with open(place.absolute, "wb") as target:
        target.write(after)
    return True
fresh.fill(after, None)
"""

FILE_GUARDS: tuple[Guard, ...] = (
    # --- paths ---
    Guard("NUL in a path", "host/files/paths.py::_fault", never("\0"), PATHS),
    Guard("over-long names", "host/files/paths.py::_fault", never("longest", "MAX_NAME_BYTES"), PATHS),
    Guard(
        "lone surrogates", "host/files/paths.py::_fault", call("encode", by="$on.encode('utf-8', 'replace')"), PATHS
    ),
    Guard("names are escaped", "text/escape.py::escaped", call("replaced", by="$0"), PATHS),
    # --- start ---
    Guard("home and / as a root", "host/files/scope.py::_directory", never("_is_wide"), SCOPE),
    Guard("a root that is no directory", "host/files/scope.py::_directory", never("isdir"), SCOPE),
    Guard("an empty root", "host/files/scope.py::_directory", never("\0"), SCOPE),
    # --- confinement ---
    Guard(
        "openat2 stays beneath",
        "host/kernel/openat2.py::openat2_directory",
        statement("syscall", by=OPENED_ANYWHERE),
        f"{BENEATH} {ATTACKS}",
    ),
    Guard(
        "a strategy is tried before it is trusted",
        "host/files/beneath.py::strategy_works",
        never("_openat2_refuses"),
        PROBE,
    ),
    Guard("the walk follows no link", "host/files/beneath.py::_STEP_FLAGS", drop("O_NOFOLLOW"), f"{ATTACKS} -k walk"),
    Guard("links are looked at", "host/files/beneath.py::_fast", always("S_ISLNK"), BENEATH),
    Guard(
        "links lead into a root or nowhere",
        "host/files/beneath.py::_Walk._jump",
        statement("SandboxViolation", by=FOUND_ANYWHERE),
        BENEATH,
    ),
    Guard(
        "at most 40 links",
        "host/files/beneath.py::_Walk._count",
        condition("MAX_HOPS", by="self._hops > 45"),
        BENEATH,
    ),
    Guard(
        "what was moved out is refused",
        "host/files/beneath.py::_real_below",
        statement("SandboxViolation", by="return ''"),
        PROBE,
    ),
    Guard(
        "the last name is opened without following", "host/kernel/regular.py::READ_FLAGS", drop("O_NOFOLLOW"), PROBE
    ),
    Guard("a FIFO is not opened", "host/files/opening.py::open_regular", skip("_require_regular", "place"), PROBE),
    Guard("a FIFO never hangs", "host/kernel/regular.py::READ_FLAGS", drop("O_NONBLOCK"), PROBE),
    Guard(
        "what was swapped is looked at again",
        "host/files/opening.py::open_regular",
        skip("_require_regular", "found"),
        PROBE,
    ),
    Guard("kernel files", "host/files/opening.py::open_regular", never("is_kernel_view"), BENEATH),
    Guard("kernel directories", "host/files/opening.py::open_directory", never("is_kernel_view"), BENEATH),
    Guard("kernel links", "host/files/beneath.py::_Walk._follow", never("is_kernel_view"), BENEATH),
    Guard(
        "deny, as requested",
        "host/files/scoped_paths.py::ScopedPaths.allowed",
        skip("_refuse_denied", "requested"),
        BENEATH,
    ),
    Guard(
        "deny, as it really is",
        "host/files/scoped_paths.py::ScopedPaths.allowed",
        skip("_refuse_denied", "absolute"),
        BENEATH,
    ),
    Guard("deny closes what is below", "text/patterns.py", value("_BELOW", by="''"), f"{SCOPE} {BENEATH}"),
    Guard("invisible code points", "text/fold.py::_folded", never("translate"), f"{SCOPE} {WRITING}"),
    Guard("case", "text/fold.py::foldings", call("lower", by="$on"), f"{SCOPE} {WRITING}"),
    Guard(
        "near names that are denied stay hidden",
        "host/files/missing.py::_near",
        call("is_denied", by="not $0"),
        BENEATH,
    ),
    # --- writing ---
    Guard("only roots for writing", "host/files/writable.py::refuse_unwritable", never("is_below"), WRITING),
    Guard("protected names, as requested", "host/files/writable.py::writable", skip("_refuse_protected_name"), PROBE),
    Guard("protected names, as they really are", "host/files/protect.py::protected_by", never("reason"), WRITING),
    Guard("the shape of a repository", "host/files/protect.py::protected_by", never("_is_repository"), WRITING),
    Guard("a shape that would be completed", "host/files/protect.py::_is_repository.has", drop("folded"), WRITING),
    Guard("the gitdir of a .git file", "host/files/protect.py::protected_by", never("_is_below_gitdir"), WRITING),
    Guard("not read", "host/files/guard.py::ReadLog.check", statement("NotRead", by="return"), WRITING),
    Guard("changed since it was read", "host/files/guard.py::ReadLog.check", never("still"), WRITING),
    Guard("young files are read whole again", "host/files/guard.py", value("_SETTLED_NS", by="-1"), LINES),
    Guard(
        "the lock",
        "host/files/atomic.py::_lock",
        call("flock", by="None"),
        f"{WRITING} {ATTACKS} -k 'lock or lose'",
    ),
    Guard(
        "unchanged under the lock",
        "host/files/writing.py::FileWriter._publish",
        never("_unchanged"),
        f"{WRITING} {ATTACKS} -k 'changes or lose or vanishes'",
    ),
    Guard(
        "a new file never replaces",
        "host/files/writing.py::FileWriter._publish",
        never("publish_new"),
        PROBE,
    ),
    Guard("nothing is left of a temporary file", "host/files/atomic.py::Fresh.close", skip("_remove_name"), WRITING),
    Guard("made directories are taken away", "host/files/atomic.py::MadeDirectories.undo", skip("rmdir"), WRITING),
    Guard("a sweep leaves the busy alone", "host/files/atomic.py::_is_stray", skip("flock"), WRITING),
    Guard("mode bits", "host/files/atomic.py::_take_after", skip("fchmod"), WRITING),
    Guard(
        "written beside, not in place",
        "host/files/writing.py::FileWriter._publish",
        statement("fill", by=WRITTEN_IN_PLACE),
        f"{WRITING} {ATTACKS}",
    ),
    # --- text ---
    Guard(
        "bytes that don't round-trip",
        "host/files/encodings.py::text_of",
        call("_round_trips", by="_decodes($0, $1)"),
        TEXT,
    ),
    Guard(
        "undecodable files are not edited",
        "host/files/encodings.py::text_of",
        statement("_undecodable", by="return Text(TextForm(), data.decode('utf-8', 'replace').encode())"),
        f"{TEXT} {WRITING}",
    ),
    Guard("NUL means binary", "host/files/encodings.py::is_binary", never("0", "head"), TEXT),
    Guard("a long line is kept in part", "host/files/lines.py::_Taking._close", skip("KEPT"), LINES),
    Guard(
        "the reader of a PDF leaves with its server",
        "host/files/pdf_child.py::_leave_with",
        always("getppid"),
        "tests/builtin/test_read.py -k server_is_killed",
    ),
    Guard(
        "no code beside the program reads a PDF",
        "host/program/programs.py::installed_places",
        condition("_INSTALLED", by="place"),
        "tests/builtin/test_read.py -k no_code_beside",
    ),
    # --- what was seen before ---
    Guard(
        "what is known by its content is judged by that",
        "host/files/guard.py::Seen.still",
        condition("digest", by="identity == self.identity"),
        f"{WRITING} -k mapping",
    ),
    Guard(
        "times in whole seconds settle later",
        "host/files/guard.py::is_settled",
        always("_COARSE_NS"),
        f"{WRITING} -k whole_seconds",
    ),
    Guard(
        "a file just written is read whole again", "host/files/guard.py::ReadLog.unchanged", drop("settled"), LINES
    ),
    Guard("an entry waits for its digest", "host/files/guard.py::ReadLog._keep_promises", skip("_whole"), LINES),
    Guard(
        "a changed file is read whole again",
        "host/files/guard.py::ReadLog.unchanged",
        part("Identity", by="seen.identity.inode == found.st_ino"),
        LINES,
    ),
    Guard(
        "a text that does not parse without its bodies is parsed whole",
        "outline/grammar.py::parsed",
        never("SKIMS"),
        "tests/outline/test_skimming.py -k same_as_in_the_whole",
    ),
    Guard(
        "the brackets of a body that is left out close",
        "outline/skimming.py::_emptied",
        always("_closes"),
        "tests/outline/test_skimming.py -k same_as_in_the_whole",
    ),
)
