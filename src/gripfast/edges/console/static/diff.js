// Diffs: inline or side by side, with the words of common languages coloured.

import { make } from "/console/static/dom.js";

const WORDS = new Set(
  ("and as async await break case catch class const continue def default del do elif else enum except export extends " +
    "false finally fn for from func function if impl import in interface is lambda let match mod module new nil none not " +
    "null or package pass private protected pub public raise return self static struct super switch then this throw " +
    "true try type typeof undefined use var void while with yield").split(" "),
);
const PIECES = /(\/\/.*|#.*|--\s.*|;;.*)|("(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)|([^\w"'`#/;-]+|.)/g;
const LONGEST = 1000; // characters of a line that are coloured

export function coloured(text) {
  if (text.length > LONGEST) return [text];
  const pieces = [];
  for (const [piece, comment, string, digit, word] of text.matchAll(PIECES)) {
    const kind = comment ? "comment" : string ? "string" : digit ? "digit" : word && WORDS.has(word.toLowerCase()) ? "keyword" : "";
    pieces.push(kind ? make("span", { class: kind }, piece) : piece);
  }
  return pieces;
}

function kindOf(row) {
  if (row.startsWith("@@") || row.startsWith("--- ") || row.startsWith("+++ ")) return "head";
  if (row.startsWith("+")) return "added";
  if (row.startsWith("-")) return "removed";
  return row.startsWith(" ") ? "same" : "head";
}

const line = (kind, text) => make("span", { class: `line ${kind}` }, ...(kind === "head" ? [text] : coloured(text)));

export function inline(rows) {
  const lines = rows.map((row) => {
    const kind = kindOf(row);
    return line(kind, kind === "head" ? row : row.slice(1));
  });
  return make("div", { class: "diff", role: "region", "aria-label": "Diff", tabindex: "0" }, ...lines);
}

export function sideBySide(rows) {
  const lines = [];
  let removed = [];
  let added = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) {
      lines.push(at < removed.length ? line("removed", removed[at]) : line("same", ""));
      lines.push(at < added.length ? line("added", added[at]) : line("same", ""));
    }
    removed = [];
    added = [];
  };
  for (const row of rows) {
    const kind = kindOf(row);
    if (kind === "removed") removed.push(row.slice(1));
    else if (kind === "added") added.push(row.slice(1));
    else {
      flush();
      if (kind === "head") lines.push(line("head", row));
      else lines.push(line("same", row.slice(1)), line("same", row.slice(1)));
    }
  }
  flush();
  return make("div", { class: "diff side", role: "region", "aria-label": "Diff, side by side", tabindex: "0" }, ...lines);
}
