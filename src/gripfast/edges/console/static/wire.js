// Talking to the server. Every request carries the secret that came with the link, in the fragment of the address; the
// browser keeps it for this very address, so pages on other ports of this machine don't get it.

const KEPT = "gripfast-secret";
const AGAIN = 1000; // milliseconds until a lost connection is tried again

export function takeSecret() {
  const [question, secret] = location.hash.slice(1).split("!");
  if (secret) localStorage.setItem(KEPT, secret);
  if (secret) history.replaceState(null, "", question ? `#${question}` : location.pathname);
}

const headers = (more = {}) => ({ "X-Gripfast-Console": localStorage.getItem(KEPT) || "", ...more });

async function answered(response) {
  const value = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Error(value.error || `the server answered ${response.status}`);
  return value;
}

export async function get(what, parameters = {}) {
  const place = `/console/api/${what}?${new URLSearchParams(parameters)}`;
  return answered(await fetch(place, { credentials: "same-origin", headers: headers() }));
}

export async function post(what, body) {
  return answered(
    await fetch(`/console/api/${what}`, {
      method: "POST",
      credentials: "same-origin",
      headers: headers({ "Content-Type": "application/json" }),
      body: JSON.stringify(body),
    }),
  );
}

// Server-sent events, read by hand: an EventSource can't send a header.
export async function follow(work, state) {
  for (;;) {
    let fault = "gone";
    try {
      const response = await fetch("/console/events", { credentials: "same-origin", headers: headers() });
      if (response.status === 403) fault = "refused";
      if (!response.ok) throw new Error(fault);
      state("live");
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        for (const [kind, again] of Object.entries(work)) if (piece.value.includes(`event: ${kind}`)) again();
      }
      throw new Error("ended");
    } catch {
      state(fault);
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
  }
}
