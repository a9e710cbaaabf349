"""What the definitions of each profile cost a model, counted by a real tokenizer (o200k)."""

from __future__ import annotations

import json
import shutil
import subprocess

from benchmarks.harness import Row, Run, bound
from benchmarks.peers import NPM, TOKENIZER, has_node_package
from gripfast.builtin.tools import TOOLS
from gripfast.edges.profiles import PROFILES, pick, price
from gripfast.framework.providers import definitions

GROUP = "Tokens of the definitions"
MOST_FOR_AGENT = 2000
OFF = 0.10
"""How far `gripfast tools --cost`, which estimates by size, may be from the count."""

_COUNT = """
const { encode } = require("gpt-tokenizer/encoding/o200k_base")
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"))
process.stdout.write(JSON.stringify(texts.map((text) => encode(text).length)))
"""


def count_tokens(texts: list[str]) -> list[int] | None:
    """The tokens of each text; None where there is no node, or no network to install the tokenizer."""
    node = shutil.which("node")
    if node is None or not has_node_package(TOKENIZER):
        return None
    command = [node, "-e", _COUNT]
    done = subprocess.run(command, cwd=NPM, input=json.dumps(texts).encode(), capture_output=True, check=True)
    return json.loads(done.stdout)


def definition_tokens(profile: str) -> int | None:
    """What a profile's definitions cost, as Anthropic's API is sent them."""
    sent = definitions(pick(TOOLS, profile), "anthropic")
    texts = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in sent]
    counts = count_tokens(texts)
    return None if counts is None else sum(counts)


def measure(run: Run) -> None:
    for profile in PROFILES:
        count = definition_tokens(profile)
        if count is None:
            run.add(Row(GROUP, f"profile {profile}", "", "not run", note="no node or no tokenizer"))
            continue
        limit = MOST_FOR_AGENT if profile == "agent" else 3500
        estimate = price(pick(TOOLS, profile))
        bound(run, GROUP, f"profile {profile}", count, limit, "tokens", note=f"`tools --cost` says {estimate}")
