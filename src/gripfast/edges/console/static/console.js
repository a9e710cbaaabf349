// The page: sessions, their calls, one call in detail, undo. `questions.js` has the questions.

import { ago, button, count, find, make, time } from "/console/static/dom.js";
import { charts } from "/console/static/charts.js";
import { coloured, inline, sideBySide } from "/console/static/diff.js";
import { focusFirst, showQuestions } from "/console/static/questions.js";
import { focusShell, showRunning } from "/console/static/running.js";
import { styled } from "/console/static/output.js";
import { follow, get, post, takeSecret } from "/console/static/wire.js";

const FIRST = 300; // calls shown at once; older ones on demand
const page = { place: null, picked: false, calls: new Map(), undone: new Set(), look: 0, others: "", shown: FIRST, open: null, todos: 0, chosen: new Set(), side: false, busy: false, again: false, charting: 0 };

const say = (text, kind = "") => { find("state").textContent = text; find("state").className = kind; };
const lost = (error) => say(error.message, "gone");

// Something that the person wanted and that was not done: it stays until it was read.
function failed(error) {
  find("fault-text").textContent = error.message;
  find("fault").hidden = false;
}

async function refresh() {
  if (page.busy) { page.again = true; return; }
  page.busy = true;
  try {
    const known = page.place;
    const [sessions, questions] = await Promise.all([get("sessions"), get("questions"), known ? readCalls() : null]);
    showQuestions(questions, failed);
    showSessions(sessions);
    if (page.place && page.place !== known) await readCalls();
    say("live", "live");
  } catch (error) {
    lost(error);
  }
  page.busy = false;
  if (page.again) { page.again = false; refresh(); }
}

function showSessions(sessions) {
  if (!page.picked && sessions.length && page.place !== sessions[0].place) choose(sessions[0].place, false);
  const rows = sessions.map((session) =>
    make("li", {}, make(
      "button", { type: "button", "aria-current": String(session.place === page.place), title: session.root, on: { click: () => { choose(session.place, true); refresh(); } } },
      make("span", { class: "root" }, session.root.split("/").slice(-2).join("/") || "/"),
      make("span", { class: "when" }, `${session.session.slice(0, 12)} · ${ago(session.last_used)}`),
    )));
  find("sessions").replaceChildren(...rows);
  find("none").hidden = sessions.length > 0;
}

function choose(place, picked) {
  Object.assign(page, { place, picked, calls: new Map(), undone: new Set(), look: 0, others: "", shown: FIRST, todos: 0, chosen: new Set() });
  find("plan").hidden = true;
  closeDetail();
  find("rows").replaceChildren();
}

async function readCalls() {
  const place = page.place;
  const first = page.look === 0;
  const found = await get("calls", { place, others: page.others, ...(first ? { most: FIRST } : { since: page.look }) });
  if (place !== page.place) return;
  take(found);
  if (first && found.left_out) {
    setTimeout(async () => { // the rest, after the newest are on the screen
      const all = await get("calls", { place, others: page.others }).catch(() => null);
      if (place !== page.place) return;
      if (all) takeOlder(all);
      else page.look = 0; // all of it again when the server is back
    }, 50);
  }
}

function take(found) {
  page.look = Math.max(page.look, found.look);
  page.others = found.others;
  if (found.todos !== page.todos) readTodos(found.todos);
  const fresh = found.calls.length > 0 && found.calls.length <= 50 && page.calls.size > 0;
  for (const call of found.calls) keep(call);
  if (fresh && !find("filter").value && !found.calls.some((call) => call.undoes.length)) drawFew(found.calls);
  else if (found.calls.length || !page.calls.size) drawCalls();
}

// The newest calls are on the screen already and may have changed since: their rows stay, and so do they.
function takeOlder(found) {
  for (const call of found.calls) if (!page.calls.has(call.key)) keep(call);
  if (find("filter").value || page.undone.size) drawCalls();
  else drawNumbers();
}

function keep(call) {
  page.calls.set(call.key, call);
  for (const number of call.undoes) page.undone.add(call.server ? `${number}@${call.server}` : String(number));
}

function drawNumbers() {
  find("older").hidden = page.calls.size <= page.shown;
  find("calls-title").textContent = `Calls (${count(page.calls.size)})`;
  if (!page.charting) page.charting = setTimeout(drawCharts, 500);
}

// Numbers are counted on each server. Between two servers the time decides.
const inOrder = (one, two) => (one.server === two.server ? one.number - two.number : one.time - two.time);

// The usual case while somebody watches: a few calls began or ended, and the other rows stay as they are.
function drawFew(calls) {
  const rows = find("rows");
  const held = heldRow();
  for (const call of [...calls].sort(inOrder)) {
    const old = [...rows.children].find((element) => element.dataset.key === call.key);
    const first = rows.firstElementChild;
    if (old) old.replaceWith(row(call));
    else if (!first || inOrder(page.calls.get(first.dataset.key), call) < 0) rows.prepend(row(call));
  }
  while (rows.children.length > page.shown) rows.lastElementChild.remove();
  hold(held);
  drawNumbers();
}

function drawCharts() {
  clearTimeout(page.charting);
  page.charting = 0;
  find("numbers").replaceChildren(...charts([...page.calls.values()].sort(inOrder)));
}

async function readTodos(number) {
  const place = page.place;
  page.todos = number;
  const todos = number ? await get("todos", { place }).catch(() => []) : [];
  if (place !== page.place) return;
  const marks = { completed: "✓ done", in_progress: "▶ now", cancelled: "✗ dropped" };
  find("todos").replaceChildren(...todos.map((todo) => make("li", { class: todo.status }, make("span", { class: "mark" }, marks[todo.status] || "○ to do"), ` ${todo.content}`)));
  find("plan").hidden = todos.length === 0;
}

function wanted() {
  const words = find("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = [...page.calls.values()].sort((one, two) => inOrder(two, one));
  if (!words.length) return all;
  return all.filter((call) => { const text = `${call.tool} ${call.subject} ${call.decision} ${call.error || ""}`.toLowerCase(); return words.every((word) => text.includes(word)); });
}

// The row that has the focus, by its key: rows are made anew, and the focus goes with them.
const heldRow = () => (find("rows").contains(document.activeElement) ? document.activeElement.closest("tr").dataset.key : null);

const openerOf = (key) => [...find("rows").children].find((element) => element.dataset.key === key)?.querySelector(".opens");

function hold(key) {
  if (key) openerOf(key)?.focus({ preventScroll: true });
  const stop = openerOf(page.open) || find("rows").querySelector(".opens"); // Tab comes to one row; j and k go on
  find("rows").querySelectorAll('.opens[tabindex="0"]').forEach((one) => one.setAttribute("tabindex", "-1"));
  if (stop) stop.setAttribute("tabindex", "0");
}

function drawCalls() {
  const all = wanted();
  const held = heldRow();
  find("rows").replaceChildren(...all.slice(0, page.shown).map((call) => row(call)));
  hold(held);
  find("older").hidden = all.length <= page.shown;
  find("calls-title").textContent = `Calls (${count(page.calls.size)})`;
  drawCharts();
  find("undo-chosen").disabled = page.chosen.size === 0;
}

function row(call) {
  const kinds = [call.error ? "failed" : "", call.ended ? "" : "running", call.changes ? "changes" : "", page.undone.has(call.key) ? "undone" : ""];
  const box = call.changes && !call.server ? make("input", { type: "checkbox", "aria-label": `Choose call ${call.number}` }) : null;
  if (box) box.checked = page.chosen.has(call.number);
  return make(
    "tr", { class: kinds.filter(Boolean).join(" "), "data-number": call.number, "data-key": call.key, "aria-current": String(page.open === call.key) },
    make("td", {}, box),
    make("td", { class: "number", title: call.server ? `on server ${call.server}` : null }, make("button", { type: "button", class: "opens", tabindex: "-1", "aria-label": `Open call ${call.key}: ${call.tool} ${call.subject}${call.error ? `, failed: ${call.error}` : ""}` }, call.key)),
    make("td", {}, time(call.time)),
    make("td", { class: "tool", title: call.error || null, "data-error": call.error || "" }, call.tool),
    make("td", { class: "what", title: call.subject }, call.subject),
    make("td", { class: call.decision.startsWith("denied") ? "decision denied" : "decision", title: call.decision }, call.decision),
    make("td", { class: "number" }, call.ended ? count(Math.round(call.milliseconds)) : ""),
    make("td", { class: "number" }, call.tokens ? count(call.tokens) : ""),
  );
}

function toggle(number, on) {
  if (on) page.chosen.add(number); else page.chosen.delete(number);
  find("undo-chosen").disabled = page.chosen.size === 0;
}

async function open(key, byKey = false) {
  page.open = key;
  mark();
  try {
    const { number, server } = page.calls.get(key);
    const call = await get("call", { place: page.place, number, server });
    if (page.open !== key) return;
    showDetail(call);
    if (byKey) find("detail").focus();
  } catch (error) {
    failed(error);
  }
}

function mark() {
  for (const element of find("rows").children) element.setAttribute("aria-current", String(element.dataset.key === page.open));
  hold(null);
}

function closeDetail() {
  const opener = find("detail").contains(document.activeElement) ? openerOf(page.open) : null;
  page.open = null;
  find("detail").hidden = true;
  mark();
  opener?.focus();
}

function showDetail(call) {
  const fact = (name, value) => (value ? [make("dt", {}, name), make("dd", {}, value)] : []);
  const parts = [
    make(
      "div", { class: "top" },
      make("h2", {}, `#${call.key} ${call.tool}`),
      call.changes.length && !call.server ? button("Undo", () => askUndo([call.number])) : null,
      button("Close", closeDetail, { "aria-keyshortcuts": "Escape" }),
    ),
    make(
      "dl", { class: "facts" },
      ...fact("Decision", call.decision), ...fact("Error", call.error), ...fact("Took", call.ended ? `${count(Math.round(call.milliseconds))} ms` : "still running"),
      ...fact("Answer", `${count(call.answer_bytes)} bytes, about ${count(call.tokens)} tokens`), ...fact("Stored output", call.output_ref), ...fact("Undoes", call.undoes.join(", ")),
      ...fact("Not covered by undo", call.uncovered.join("; ")),
    ),
    make("h3", {}, "Arguments"),
    ...argumentsOf(call),
  ];
  if (call.changes.length) parts.push(...changed(call));
  parts.push(make("h3", {}, "Answer"), make("pre", { tabindex: "0", class: "answer" }, ...answered(call)));
  find("detail").replaceChildren(...parts.filter(Boolean));
  find("detail").hidden = false;
}

function argumentsOf(call) {
  if (!call.fields.length) return [make("pre", { tabindex: "0" }, ...coloured(call.arguments))];
  return call.fields.flatMap(([name, text]) => [make("p", { class: "soft" }, name), make("pre", { tabindex: "0", class: "field" }, text)]);
}

const notKept = (call) => (call.server ? `The answer and the contents are on server ${call.server}; look and undo there.` : "The text of this answer was not kept.");

function answered(call) {
  if (call.answer === null) return [notKept(call)];
  return call.answer_runs ? styled(call.answer_runs) : [call.answer];
}

function changed(call) {
  if (call.server) return [make("h3", {}, "Changes"), make("ul", {}, ...call.changes.map((change) => make("li", {}, `${change.kind}: ${change.path}`)))];
  const draw = () => (page.side ? sideBySide(call.diff) : inline(call.diff));
  const place = make("div", {}, draw());
  const way = button(page.side ? "Inline" : "Side by side", () => { page.side = !page.side; way.textContent = page.side ? "Inline" : "Side by side"; place.replaceChildren(draw()); });
  const paths = call.changes.map((change) => make("li", {}, `${change.kind}: ${change.path} `, call.changes.length > 1 ? button("Undo this path", () => askUndo([call.number], [change.raw])) : ""));
  return [make("h3", {}, "Changes ", way), make("ul", {}, ...paths), place, call.diff_is_cut ? make("p", {}, "The diff is longer; `gripfast diff` shows all of it.") : null];
}

async function askUndo(calls, paths = []) {
  const dialog = find("undo");
  try {
    showUndo(dialog, calls, paths, await post("undo", { place: page.place, calls, paths, dry_run: true }));
    if (!dialog.open) dialog.showModal();
  } catch (error) {
    failed(error);
  }
}

function showUndo(dialog, calls, paths, result) {
  const done = !result.dry_run;
  const list = (rows) => make("ul", {}, ...rows.slice(0, 500).map((text) => make("li", {}, text)));
  const parts = [make("h2", {}, `${done ? "Took" : "Would take"} back call ${result.calls.join(", ")}`)];
  if (result.restored.length) parts.push(list(result.restored.map((one) => `${one.path}: ${one.what}`)));
  else parts.push(make("p", {}, "Nothing to put back."));
  const left = [...result.refused, ...result.kept];
  if (left.length) parts.push(make("h3", {}, "Left alone"), list(left.map((one) => `${one.path}: ${one.reason}`)));
  const perform = async () => {
    try {
      showUndo(dialog, calls, paths, await post("undo", { place: page.place, calls, paths, dry_run: false }));
      page.chosen.clear();
    } catch (error) {
      dialog.close();
      failed(error);
    }
  };
  const can = !done && result.restored.length > 0;
  parts.push(make("div", { class: "answers" }, button(done ? "Close" : "Cancel", () => dialog.close()), can ? button("Undo now", perform, { class: "primary" }) : null));
  dialog.replaceChildren(...parts);
}

// The number of the open call, if it is in the record of this machine.
function openHere() {
  const call = page.calls.get(page.open);
  return call && !call.server ? call.number : 0;
}

function step(by) {
  const rows = [...find("rows").children];
  const at = rows.findIndex((element) => element.dataset.key === page.open);
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  if (!next) return;
  next.scrollIntoView({ block: "nearest" });
  next.querySelector(".opens").focus({ preventScroll: true });
  open(next.dataset.key);
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  u: () => { const calls = page.chosen.size ? [...page.chosen] : openHere() ? [openHere()] : []; if (calls.length) askUndo(calls); },
  x: () => { const number = openHere(); if (number) { toggle(number, !page.chosen.has(number)); drawCalls(); } },
  q: focusFirst,
  r: focusShell,
  "/": () => find("filter").focus(),
  "?": () => find("help").showModal(),
  Escape: closeDetail,
};

document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement && event.target.type !== "checkbox";
  if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape") || document.querySelector("dialog[open]")) return;
  const work = KEYS[event.key];
  if (work) { event.preventDefault(); if (typing) event.target.blur(); work(); }
});
find("rows").addEventListener("click", (event) => {
  const { key, number } = event.target.closest("tr").dataset;
  if (event.target instanceof HTMLInputElement) toggle(Number(number), event.target.checked);
  else open(key, event.detail === 0);
});
find("rows").addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (by) { event.preventDefault(); step(by); }
});
find("waiting").addEventListener("click", focusFirst);
find("fault-close").addEventListener("click", () => { find("fault").hidden = true; });
find("filter").addEventListener("input", () => { page.shown = FIRST; drawCalls(); });
find("older").addEventListener("click", () => { page.shown += FIRST; drawCalls(); });
find("undo-chosen").addEventListener("click", () => askUndo([...page.chosen].sort((one, two) => one - two)));
find("help-button").addEventListener("click", () => find("help").showModal());
find("help-close").addEventListener("click", () => find("help").close());

async function quota() {
  try {
    const room = await get("quota");
    find("quota-meter").value = room.used / room.quota;
    find("quota-text").textContent = `${(room.used / 1048576).toFixed(1)} of ${count(Math.round(room.quota / 1048576))} MB, ${Math.round((100 * room.used) / room.quota)} %`;
  } catch { /* it is shown when the server is back */ }
}

takeSecret();
const running = () => showRunning(failed);
const STATES = {
  live: ["live", "live"],
  gone: ["the server is gone; this page connects again by itself, after a restart open its new link", "gone"],
  refused: ["the console was started again; open the new link that it printed", "gone"],
};
follow({ changed: refresh, running }, (state) => say(...STATES[state]));
refresh();
running();
quota();
setInterval(quota, 30000);
