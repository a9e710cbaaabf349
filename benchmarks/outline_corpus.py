"""Real source in seven languages, and what the languages' own parsers find in it."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import CACHE
from benchmarks.peers import NPM, install_node

SOURCES = CACHE / "outline"
PROGRAMS = Path(__file__).parent / "outline_truth"
TYPESCRIPT, TOKENIZER = "typescript@5", "gpt-tokenizer"
TYPESCRIPT_SOURCES = ("rxjs@7", "zod@4", "viem@2", "ethers@6", "effect@4")  # they ship their sources
C_SOURCES = ("zlib", "lua5.4", "lz4", "xxhash", "cjson", "libyaml")
JDKS = Path("/usr/lib/jvm")

Key = tuple[str, int, int]  # name, first row, last row
Truth = Iterator[tuple[Path, list[Key]]]


class MissingCorpus(Exception):
    """A corpus or the parser for it is not on this machine; the message says which."""


@dataclass(frozen=True)
class Corpus:
    language: str
    parser: str
    files: Callable[[], list[Path]]
    truth: Callable[[list[Path]], Truth]


# --- Python ---


def _python_files() -> list[Path]:
    root = Path(sysconfig.get_path("stdlib"))
    return [p for p in sorted(root.rglob("*.py")) if not {"site-packages", "test", "tests"} & set(p.parts)]


def _python_truth(files: list[Path]) -> Truth:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for path in files:
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        yield path, [(n.name, n.lineno, n.end_lineno or 0) for n in ast.walk(tree) if isinstance(n, kinds)]


# --- languages whose truth is a program that reads paths and writes JSON lines ---


def _by_program(*command: str) -> Callable[[list[Path]], Truth]:
    def truth(files: list[Path]) -> Truth:
        program = shutil.which(command[0]) or command[0]
        asked = "".join(f"{path}\n" for path in files)
        done = subprocess.run([program, *command[1:]], input=asked.encode(), capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.decode("utf-8", "replace")[-200:])
        for line in done.stdout.decode("utf-8", "replace").splitlines():
            found = json.loads(line)
            yield Path(found["file"]), [(_bare(name), first, last) for _, name, first, last in found["definitions"]]

    return truth


def _bare(name: str) -> str:
    name = name.strip("\"'")
    return name.rpartition("::")[2]


def _needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            raise MissingCorpus(f"no {program} on this machine")


def _go_files() -> list[Path]:
    _needs("go")
    root = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True).stdout.strip()
    source = (Path(root) / "src").resolve()
    files = [p for p in sorted(source.rglob("*.go")) if "testdata" not in p.parts and not p.stem.endswith("_test")]
    if not files:
        raise MissingCorpus("Go is here without its sources")
    return files


def _jdk() -> Path:
    """The newest JDK that has its sources."""
    found = [p for p in sorted(JDKS.glob("*")) if (p / "lib/src.zip").exists() and (p / "bin/javac").exists()]
    if not found:
        raise MissingCorpus("no JDK with its sources (Debian: openjdk-17-source)")
    return found[-1]


def _java_files() -> list[Path]:
    jdk = _jdk()
    place = SOURCES / f"java-{jdk.name}"
    if not place.is_dir():
        with zipfile.ZipFile(jdk / "lib/src.zip") as archive:
            wanted = [name for name in archive.namelist() if name.startswith(("java.base/java/", "jdk.compiler/"))]
            archive.extractall(place, wanted)
    return sorted(place.rglob("*.java"))


def _java_truth(files: list[Path]) -> Truth:
    return _by_program(str(_jdk() / "bin/java"), str(PROGRAMS / "Truth.java"))(files)


def _ruby_files() -> list[Path]:
    _needs("ruby")
    return sorted(Path("/usr/lib/ruby").rglob("*.rb"))


def _php_files() -> list[Path]:
    _needs("php")
    files = sorted(Path("/usr/share/php").rglob("*.php"))
    if len(files) < 200:
        raise MissingCorpus("too little PHP in /usr/share/php (Debian: phpunit, php-symfony-console)")
    return files


# --- TypeScript, from npm ---


def npm_package(package: str) -> Path:
    """An installed npm package, fetched on first use."""
    name = package.rpartition("@")[0] or package
    place = NPM / "node_modules" / name
    if not place.is_dir():
        _needs("npm", "node")
        install_node(package)
    if not place.is_dir():
        raise MissingCorpus(f"npm could not install {package} (no network?)")
    return place


def _typescript_files() -> list[Path]:
    _needs("npm", "node")
    return [path for package in TYPESCRIPT_SOURCES for path in _packed(package)]


def _packed(package: str) -> list[Path]:
    """The sources in a package, without what it depends on."""
    place = SOURCES / package
    if not place.is_dir():
        place.mkdir(parents=True)
        subprocess.run(["npm", "pack", "--silent", package], cwd=place, capture_output=True, check=False, timeout=120)
        for archive in place.glob("*.tgz"):
            with tarfile.open(archive) as packed:
                packed.extractall(place, filter="data")
    files = sorted(p for p in place.rglob("*.ts") if p.is_file() and not p.name.endswith(".d.ts"))
    if not files:
        shutil.rmtree(place)
        raise MissingCorpus(f"npm could not fetch {package} (no network?)")
    return files


def _typescript_truth(files: list[Path]) -> Truth:
    return _by_program("node", str(PROGRAMS / "truth.mjs"), str(npm_package(TYPESCRIPT)))(files)


# --- C, from Debian's source packages ---


def _c_files() -> list[Path]:
    _needs("clang")
    place = SOURCES / "c"
    if not place.is_dir():
        _needs("apt-get")
        _fetch_c(place)
    files = [p for p in sorted(place.rglob("*.c")) if not {"contrib", "tests", "fuzzing"} & set(p.parts)]
    if not files:
        shutil.rmtree(place)
        raise MissingCorpus("Debian's source packages could not be fetched")
    return files


def _fetch_c(place: Path) -> None:
    """With lists of its own: the machine's are left alone."""
    place.mkdir(parents=True)
    lists = place / "apt"
    (lists / "parts").mkdir(parents=True)
    (lists / "lists/partial").mkdir(parents=True)
    for file in Path("/etc/apt/sources.list.d").glob("*.sources"):
        text = file.read_text(encoding="utf-8").replace("Types: deb\n", "Types: deb-src\n")
        (lists / "parts" / file.name).write_text(text, encoding="utf-8")
    options = [f"Dir::Etc::sourceparts={lists}/parts", "Dir::Etc::sourcelist=/dev/null"]
    options += [f"Dir::State::lists={lists}/lists", "APT::Sandbox::User=root"]
    flags = [part for option in options for part in ("-o", option)]
    subprocess.run(["apt-get", *flags, "-qq", "update"], capture_output=True, check=False, timeout=300)
    command = ["apt-get", *flags, "-qq", "source", "--download-only", *C_SOURCES]
    subprocess.run(command, cwd=place, capture_output=True, check=False, timeout=300)
    for archive in place.glob("*.orig.tar.*"):
        with tarfile.open(archive) as packed:
            packed.extractall(place, filter="data")


def _c_truth(files: list[Path]) -> Truth:
    for path in files:
        folders = {path.parent, *(p for p in path.parents[:3] if "outline" in p.parts and p.name != "c")}
        includes = [f"-I{folder}{below}" for folder in sorted(folders) for below in ("", "/include", "/lib", "/src")]
        command = ["clang", "-fsyntax-only", "-w", "-Xclang", "-ast-dump=json", *includes, str(path)]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode == 0:
            yield path, _Dump(path).definitions(json.loads(done.stdout))


class _Dump:
    """Reads clang's JSON, which names the file of a place only where it changes."""

    def __init__(self, path: Path) -> None:
        self._source = path.read_bytes()
        self._path = str(path)
        self._file = ""

    def definitions(self, unit: dict[str, Any]) -> list[Key]:
        return list(self._walk(unit))

    def _walk(self, node: dict[str, Any]) -> Iterator[Key]:
        loc = node.get("loc", {})
        is_here = self._place(loc) is not None and "expansionLoc" not in loc  # what a macro makes is not in the text
        begin, end = (self._place(node.get("range", {}).get(side, {})) for side in ("begin", "end"))
        if is_here and begin is not None and end is not None and _is_definition(node):
            yield node["name"], self._row(begin), self._row(end)
        for inner in node.get("inner", ()):
            yield from self._walk(inner)

    def _place(self, place: dict[str, Any]) -> int | None:
        """The offset in our file, of where a macro is used if it is one's."""
        if "expansionLoc" in place:
            self._place(place["spellingLoc"])
            return self._place(place["expansionLoc"])
        self._file = place.get("file", self._file)
        return place.get("offset") if self._file == self._path else None

    def _row(self, offset: int) -> int:
        return self._source.count(b"\n", 0, offset) + 1


def _is_definition(node: dict[str, Any]) -> bool:
    if not node.get("name") or node.get("isImplicit"):
        return False
    match node.get("kind"):
        case "FunctionDecl":
            return any(inner.get("kind") == "CompoundStmt" for inner in node.get("inner", ()))
        case "RecordDecl":
            return node.get("completeDefinition", False)
        case "EnumDecl" | "TypedefDecl":
            return True
        case _:
            return False


CORPORA = (
    Corpus("Python", "ast", _python_files, _python_truth),
    Corpus("TypeScript", "TypeScript's compiler", _typescript_files, _typescript_truth),
    Corpus("Go", "go/parser", _go_files, _by_program("go", "run", str(PROGRAMS / "truth.go"))),
    Corpus("Java", "javac", _java_files, _java_truth),
    Corpus("C", "clang", _c_files, _c_truth),
    Corpus("Ruby", "Ruby's parser", _ruby_files, _by_program("ruby", str(PROGRAMS / "truth.rb"))),
    Corpus("PHP", "PHP's tokens", _php_files, _by_program("php", str(PROGRAMS / "truth.php"))),
)
