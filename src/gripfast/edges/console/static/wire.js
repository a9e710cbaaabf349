// Talking to the server.

async function answered(response) {
  const value = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  if (!response.ok) throw new Error(value.error || `the server answered ${response.status}`);
  return value;
}

export async function get(what, parameters = {}) {
  return answered(await fetch(`/console/api/${what}?${new URLSearchParams(parameters)}`, { credentials: "same-origin" }));
}

export async function post(what, body) {
  return answered(
    await fetch(`/console/api/${what}`, {
      method: "POST",
      credentials: "same-origin",
      headers: { "Content-Type": "application/json", "X-Gripfast-Console": "1" },
      body: JSON.stringify(body),
    }),
  );
}

export function follow(changed, state) {
  const events = new EventSource("/console/events");
  events.addEventListener("open", () => state("live"));
  events.addEventListener("changed", changed);
  events.addEventListener("error", () => state("gone"));
  return events;
}
