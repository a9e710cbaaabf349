// Questions that wait for the person: what would run, its diff, and the answers.

import { button, find, make, time } from "/console/static/dom.js";
import { inline } from "/console/static/diff.js";
import { post } from "/console/static/wire.js";

let shown = new Map();

export function showQuestions(questions, failed) {
  const place = find("questions");
  const known = new Set(questions.map((question) => question.id));
  for (const [id, element] of shown) if (!known.has(id)) { element.remove(); shown.delete(id); }
  for (const question of questions) {
    if (!shown.has(question.id)) {
      const element = card(question, failed);
      shown.set(question.id, element);
      place.append(element);
    }
  }
  tell();
  if (location.hash && shown.has(location.hash.slice(1))) {
    shown.get(location.hash.slice(1)).focus();
    history.replaceState(null, "", location.pathname);
  }
}

// Also in the header, which stays in sight, and in the title, for whoever looks at another tab.
function tell() {
  find("questions").hidden = find("waiting").hidden = shown.size === 0;
  find("waiting").textContent = shown.size === 1 ? "1 question waits" : `${shown.size} questions wait`;
  document.title = shown.size ? `(${shown.size}) gripfast console` : "gripfast console";
}

export function focusFirst() {
  const first = [...shown.values()].find((element) => !element.inert);
  if (first) first.focus();
}

function card(question, failed) {
  const because = make("input", { type: "text", placeholder: "reason, if you deny (optional)", "aria-label": `Reason to deny ${question.id}`, maxlength: "500" });
  const answer = async (verdict) => {
    const had = element.contains(document.activeElement);
    element.inert = true;  // one answer: until the server has it, the card takes neither keys nor clicks
    try {
      await post("answer", { id: question.id, verdict, because: verdict === "no" ? because.value : "" });
      shown.delete(question.id);
      element.remove();
      tell();
      if (had) focusFirst();
    } catch (error) {
      element.inert = false;
      if (had) element.focus();
      failed(error);
    }
  };
  const widths = Object.entries(question.widths || {});
  const answers = make(
    "div", { class: "answers" },
    button("Approve", () => answer("yes"), { class: "primary", "aria-keyshortcuts": "y" }),
    ...widths.map(([width], at) => button(at === 0 && width === "always" ? "Always" : wider(width), () => answer(width), { title: question.widths[width] })),
    button("Deny", () => answer("no"), { class: "danger", "aria-keyshortcuts": "n" }),
    because,
  );
  because.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.repeat && because.value.trim()) answer("no"); });
  const keys = (event) => {
    if (event.target instanceof HTMLInputElement || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const verdict = { y: "yes", n: "no", a: widths.length ? widths[0][0] : undefined }[event.key];
    if (verdict) { event.preventDefault(); event.stopPropagation(); answer(verdict); }
  };
  const element = make(
    "article", { class: "question", tabindex: "0", "aria-label": `Question ${question.id}`, "data-id": question.id, on: { keydown: keys } },
    make("h3", {}, `${question.id}: ${question.tool} in ${question.root}${question.server ? ` on ${question.server}` : ""}`),
    make("p", { class: "covers" }, `asked at ${time(question.asked_at)}${question.asker ? ` by ${question.asker}` : ""}; over at ${time(question.expires_at)}`),
    ...wholly(make("pre", { tabindex: "0" }, question.shown)),
    ...(question.diff ? wholly(inline(question.diff.split("\n"))) : []),
    ...widths.filter(([, words]) => !question.shown.includes(`covers ${words}`)).map(([width, words]) => make("p", { class: "covers" }, `“${wider(width)}” covers ${words}.`)),
    answers,
  );
  return element;
}

// What is longer than its box says so until its end was seen: nobody should approve what they did not read.
function wholly(box) {
  const note = make("p", { class: "more", role: "note", hidden: true }, "There is more: scroll down to read all of it.");
  const look = () => { note.hidden = box.scrollHeight - box.scrollTop - box.clientHeight < 4; };
  box.addEventListener("scroll", look);
  new ResizeObserver(look).observe(box);
  return [box, note];
}

function wider(width) {
  return { always: "Always", always_leading: "Always, whatever follows", remember: "Always, remembered" }[width] || width;
}
