// What commands print: pieces of text with the styles of a terminal, which the server has told apart.

import { make } from "/console/static/dom.js";

export function styled(runs) {
  return runs.map(([text, style]) => (style ? make("span", { class: style.split(" ").map((name) => `t-${name}`).join(" ") }, text) : text));
}
