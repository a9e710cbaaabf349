"""Fetches the projects that we compare with from the package registries into a separate folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Any

from benchmarks.harness import CACHE, ROOT

VENV = CACHE / "venv"
NPM = CACHE / "npm"
PYTHON_PEERS = ["fastmcp>=4,<5", "pydantic-ai-slim>=2,<3", "pydantic-ai-harness>=0.62,<1", "ast-grep-cli>=0.51,<1"]
FILESYSTEM, COMMANDER = "@modelcontextprotocol/server-filesystem", "@wonderwhy-er/desktop-commander"
NODE_PEERS = [FILESYSTEM, COMMANDER]
TOKENIZER = "gpt-tokenizer"

# The override names the newest version a registry had: without it one server could not be installed there.
PACKAGE = '{"private": true, "overrides": {"typedarray.prototype.slice": "1.0.5"}}'


def python_with_peers() -> tuple[str, str]:
    """An interpreter with gripfast and every Python peer that could be installed, and what is missing."""
    python = VENV / "bin" / "python"
    wanted = "\n".join([str(ROOT), *PYTHON_PEERS, (ROOT / "pyproject.toml").read_text(encoding="utf-8")])
    stamp = VENV / ".installed"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return str(python), ""
    pip = [str(python), "-m", "pip", "install", "-qqq", "--disable-pip-version-check", "--retries", "1"]
    if not _works([sys.executable, "-m", "venv", str(VENV)]):
        return sys.executable, "no environment for the peers' packages could be made"
    if not _works([*pip, "-e", f"{ROOT}[all]", "hypothesis", "playwright"]):
        return sys.executable, "the peers' packages could not be installed (no network?)"
    if not _works([*pip, *PYTHON_PEERS]):
        return str(python), "fastmcp, pydantic-ai, its harness and ast-grep could not be installed (no network?)"
    stamp.write_text(wanted, encoding="utf-8")
    return str(python), ""


def _works(command: list[str], **options: Any) -> bool:
    """Whether a command succeeds, with a timeout in case it waits for the network."""
    try:
        return subprocess.run(command, check=False, stdin=subprocess.DEVNULL, timeout=300, **options).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def node_peers() -> str:
    """Installs the Node servers; returns which are missing and why, or an empty text."""
    for package in NODE_PEERS:
        if node_server(package)[1] and shutil.which("npm") and shutil.which("node"):
            install_node(package)
    return "; ".join(filter(None, (node_server(package)[1] for package in NODE_PEERS)))


def has_node_package(package: str) -> bool:
    """Installs a package for Node if it is not there; whether it is there now."""
    if not (NPM / "node_modules" / package).is_dir() and shutil.which("npm"):
        install_node(package)
    return (NPM / "node_modules" / package).is_dir()


def install_node(package: str) -> None:
    NPM.mkdir(parents=True, exist_ok=True)
    if not (NPM / "package.json").is_file():
        (NPM / "package.json").write_text(PACKAGE, encoding="utf-8")
    options = "--silent --ignore-scripts --no-audit --no-fund --no-package-lock --fetch-retries=1".split()
    environment = {**os.environ, "PUPPETEER_SKIP_DOWNLOAD": "1"}
    _works(["npm", "install", *options, package], cwd=NPM, capture_output=True, env=environment)


def node_server(package: str) -> tuple[list[str], str]:
    """The command that starts a Node server, and why it can't be started, or an empty text."""
    node = shutil.which("node")
    if node is None:
        return [], f"{package}: no node on this machine"
    for candidate in ("dist/index.js", "index.js", "build/index.js"):
        if (file := NPM / "node_modules" / package / candidate).is_file():
            return [node, str(file)], ""
    if shutil.which("npm") is None:
        return [], f"{package}: not installed, no npm on this machine"
    return [], f"{package}: npm could not install it (no network?)"
