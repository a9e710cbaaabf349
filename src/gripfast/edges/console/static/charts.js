// The numbers of a session as pictures, each with its values in words for those who don't see it.

import { count, make } from "/console/static/dom.js";

const SVG = "http://www.w3.org/2000/svg";

function shape(name, options, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(options)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

function figure(title, picture, words) {
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", `${title}: ${words}`);
  return make("figure", {}, make("figcaption", {}, title), picture);
}

function overTime(title, calls, value) {
  const picture = shape("svg", { viewBox: "0 0 300 74" });
  const first = calls[0].time;
  const span = Math.max(60, calls[calls.length - 1].time - first);
  const bars = new Array(48).fill(0);
  for (const call of calls) bars[Math.min(47, Math.floor(((call.time - first) / span) * 48))] += value(call);
  const largest = Math.max(...bars, 1);
  bars.forEach((amount, at) => {
    const height = (amount / largest) * 50;
    if (amount) picture.append(shape("rect", { class: "bar", x: at * 6.25, y: 58 - Math.max(height, 1.5), width: 5, height: Math.max(height, 1.5), rx: 1 }));
  });
  const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
  picture.append(shape("text", { x: 0, y: 71, class: "soft" }, clock(first)));
  picture.append(shape("text", { x: 300, y: 71, class: "soft", "text-anchor": "end" }, clock(first + span)));
  const total = bars.reduce((sum, amount) => sum + amount, 0);
  return figure(`${title}: ${count(total)}`, picture, `${count(total)} in ${Math.round(span / 60)} minutes`);
}

function byName(title, rows, unit) {
  const picture = shape("svg", { viewBox: `0 0 300 ${Math.max(1, rows.length) * 16 + 2}` });
  const largest = Math.max(...rows.map((row) => row[1]), 1);
  rows.forEach(([name, amount], at) => {
    const shown = name.length > 22 ? `${name.slice(0, 21)}…` : name;
    picture.append(shape("text", { x: 0, y: at * 16 + 12 }, shown));
    picture.append(shape("rect", { class: "bar", x: 140, y: at * 16 + 3, width: Math.max(1.5, (amount / largest) * 100), height: 10, rx: 1 }));
    picture.append(shape("text", { x: 146 + (amount / largest) * 100, y: at * 16 + 12, class: "soft" }, count(Math.round(amount))));
  });
  return figure(title, picture, rows.map(([name, amount]) => `${name} ${count(Math.round(amount))} ${unit}`).join(", "));
}

export function charts(calls) {
  if (!calls.length) return [];
  const byTool = new Map();
  for (const call of calls) byTool.set(call.tool, (byTool.get(call.tool) || 0) + call.tokens);
  const tools = [...byTool].sort((one, two) => two[1] - one[1]).slice(0, 4);
  const slowest = [...calls].sort((one, two) => two.milliseconds - one.milliseconds).slice(0, 4);
  return [
    overTime("Calls over time", calls, () => 1),
    overTime("Tokens of answers over time", calls, (call) => call.tokens),
    byName("Tokens by tool", tools, "tokens"),
    byName("Slowest calls, ms", slowest.map((call) => [`#${call.key} ${call.tool}`, call.milliseconds]), "ms"),
  ];
}
