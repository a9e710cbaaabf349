// Making elements. Whatever comes from a workspace is set as text, never as markup.

export function make(name, options = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(options)) {
    if (key === "class") element.className = value;
    else if (key === "on") for (const [event, work] of Object.entries(value)) element.addEventListener(event, work);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const find = (id) => document.getElementById(id);

export function button(text, work, options = {}) {
  return make("button", { type: "button", on: { click: work }, ...options }, text);
}

export function time(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });
}

export function ago(seconds) {
  const gone = Math.max(0, Date.now() / 1000 - seconds);
  if (gone < 60) return "just now";
  if (gone < 3600) return `${Math.round(gone / 60)} min ago`;
  if (gone < 86400) return `${Math.round(gone / 3600)} h ago`;
  return new Date(seconds * 1000).toLocaleDateString();
}

export const count = (number) => number.toLocaleString("en");
