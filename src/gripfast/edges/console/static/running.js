// Background shells of all sessions: what they print, while they print it, and a button to end each.

import { ago, button, find, make } from "/console/static/dom.js";
import { get, post } from "/console/static/wire.js";
import { styled } from "/console/static/output.js";

const PAUSE = 250; // milliseconds between two looks at outputs
const shown = new Map();
const state = { busy: false, again: false };

export async function showRunning(failed) {
  if (state.busy) { state.again = true; return; }
  state.busy = true;
  try {
    const shells = await get("running");
    take(shells, failed);
    await Promise.all(shells.map(readOutput));
  } catch { /* shown when the server is back */ }
  await new Promise((resolve) => setTimeout(resolve, PAUSE));
  state.busy = false;
  if (state.again) { state.again = false; showRunning(failed); }
}

export function focusShell() {
  const first = shown.values().next().value;
  if (first) first.element.focus();
}

function take(shells, failed) {
  const known = new Set(shells.map((shell) => shell.id));
  for (const [id, one] of shown) if (!known.has(id)) { one.element.remove(); shown.delete(id); }
  for (const shell of [...shells].reverse()) {
    if (!shown.has(shell.id)) {
      shown.set(shell.id, card(shell, failed));
      find("shells").prepend(shown.get(shell.id).element);
    }
    mark(shown.get(shell.id), shell);
  }
  find("running").hidden = shown.size === 0;
}

function mark(one, shell) {
  one.status.textContent = shell.ended_at ? `ended ${ago(shell.ended_at)}: ${shell.how}` : `running, started ${ago(shell.started_at)}`;
  one.end.hidden = Boolean(shell.ended_at);
  one.element.classList.toggle("over", Boolean(shell.ended_at));
}

async function readOutput(shell) {
  const one = shown.get(shell.id);
  if (!one || (one.over && shell.ended_at)) return;
  const found = await get("output", { id: shell.id });
  if (found.size !== one.size) {
    const atEnd = one.output.scrollHeight - one.output.scrollTop - one.output.clientHeight < 30;
    one.output.replaceChildren(found.left_out ? make("span", { class: "soft" }, "… what came before is not shown\n") : "", ...styled(found.runs));
    if (atEnd) one.output.scrollTop = one.output.scrollHeight;
  }
  Object.assign(one, { size: found.size, over: Boolean(shell.ended_at) });
}

function card(shell, failed) {
  const ending = async () => {
    end.disabled = true;
    try {
      await post("end", { id: shell.id });
    } catch (error) {
      failed(error);
      end.disabled = false;
    }
  };
  const end = button("End", ending, { class: "danger", "aria-label": `End ${shell.name}: ${shell.command.slice(0, 60)}`, "aria-keyshortcuts": "e" });
  const keys = (event) => {
    if (event.key !== "e" || event.ctrlKey || event.metaKey || event.altKey || end.hidden || end.disabled) return;
    event.preventDefault();
    event.stopPropagation();
    ending();
  };
  const status = make("span", { class: "covers" });
  const output = make("pre", { tabindex: "0", "aria-label": `Output of ${shell.name}` });
  const element = make(
    "article", { class: "shell", tabindex: "0", "aria-label": `Shell ${shell.name}`, "data-id": shell.id, on: { keydown: keys } },
    make("div", { class: "top" }, make("h3", {}, `${shell.name} `, make("code", {}, shell.command)), end),
    make("p", { class: "covers" }, `${shell.root} · session ${shell.session.slice(0, 12)} · `, status),
    output,
  );
  return { element, status, end, output, size: -1, over: false };
}
