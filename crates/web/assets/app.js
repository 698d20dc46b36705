// Everything works without this file; it makes reading more pleasant.
"use strict";

// Times in the reader's own time zone.
function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = time.dateTime;
    const two = (number) => String(number).padStart(2, "0");
    const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
    const parts = [at.getHours(), at.getMinutes()];
    if (!time.classList.contains("short")) parts.push(at.getSeconds());
    time.textContent = `${day} ${parts.map(two).join(":")}`;
  }
}

// The key / goes to the search box, as in many places.
document.addEventListener("keydown", (event) => {
  const field = document.querySelector("[data-hotkey='/']");
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || !field || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  field.focus();
  field.select();
});

// Parts that the server renders again every few seconds, while someone looks at them.
function keepLive(part) {
  const every = 1000 * Number(part.dataset.every || 3);
  async function refresh() {
    if (!document.hidden && !part.contains(document.activeElement)) {
      try {
        const answer = await fetch(part.dataset.live, { headers: { accept: "text/html" } });
        if (answer.ok) {
          const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
          part.replaceChildren(...fresh.body.childNodes);
          localTimes(part);
          // A field is not replaced while someone fills it in.
          if (part.querySelector("form")) return;
          // Some parts are finished at some time.
          if (part.dataset.while && !part.querySelector(part.dataset.while)) return;
        }
      } catch {
        // The program may be restarting: try again.
      }
    }
    setTimeout(refresh, every);
  }
  setTimeout(refresh, every);
}

// Parts that the server sends whenever they change.
function watch(place) {
  const source = new EventSource(place.dataset.events);
  for (const part of document.querySelectorAll("[data-part]")) {
    source.addEventListener(part.dataset.part, (event) => {
      // A field is not replaced while someone fills it in.
      if (part.contains(document.activeElement)) return;
      const fresh = new DOMParser().parseFromString(JSON.parse(event.data), "text/html");
      part.replaceChildren(...fresh.body.childNodes);
      localTimes(part);
    });
  }
  source.addEventListener("over", () => {
    source.close();
    document.querySelectorAll("h1 .badge.running").forEach((badge) => badge.remove());
  });
}

// Fields that only matter with a certain choice.
function followChoice(field) {
  const chooser = document.querySelector(`[name="${field.dataset.onlyFor}"]`);
  const show = () => {
    const checked = document.querySelector(`[name="${field.dataset.onlyFor}"]:checked`);
    field.hidden = (checked || chooser).value !== field.dataset.onlyValue;
  };
  document.addEventListener("change", (event) => {
    if (event.target.name === field.dataset.onlyFor) show();
  });
  show();
}

localTimes(document);
// The zone of the times on the page.
const zone = document.getElementById("zone");
if (zone) {
  const minutes = -new Date().getTimezoneOffset();
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  const offset = `UTC${minutes < 0 ? "−" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
  zone.textContent = `${zone.dataset.zone}${Intl.DateTimeFormat().resolvedOptions().timeZone} (${offset}).`;
}
document.querySelectorAll("[data-live]").forEach(keepLive);
document.querySelectorAll("[data-events]").forEach(watch);
document.querySelectorAll("[data-only-for]").forEach(followChoice);
document.querySelectorAll("select[data-submit]").forEach((select) => {
  select.addEventListener("change", () => select.form.requestSubmit());
});

// A calendar that is wider than the screen opens where its newest day is.
document.querySelectorAll("svg.calendar").forEach((calendar) => {
  const days = calendar.querySelectorAll("a");
  if (days.length === 0) return;
  const day = days[days.length - 1].getBoundingClientRect();
  const box = calendar.parentElement.getBoundingClientRect();
  if (day.left < box.left) calendar.parentElement.scrollLeft += day.right - box.right;
});

// A button pressed once is not pressed twice.
document.addEventListener("submit", (event) => {
  const pressed = event.submitter;
  if (pressed) setTimeout(() => { pressed.disabled = true; }, 0);
});
window.addEventListener("pageshow", () => {
  document.querySelectorAll("button:disabled").forEach((button) => { button.disabled = false; });
});

// How many known pages the typed patterns would collect.
function keepCount(part) {
  const fields = part.dataset.fields.split(" ").map((name) => document.getElementById(name));
  let timer;
  async function count() {
    const query = new URLSearchParams({ site: part.dataset.site });
    fields.forEach((field) => query.set(field.name, field.value));
    try {
      const answer = await fetch(`${part.dataset.count}?${query}`, { headers: { accept: "text/html" } });
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      part.replaceChildren(...fresh.body.childNodes);
    } catch {
      // The next change tries again.
    }
  }
  fields.forEach((field) => field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(count, 400);
  }));
  count();
}
document.querySelectorAll("[data-count]").forEach(keepCount);

// A chosen file is read into its text field; it is not sent as a file.
document.querySelectorAll("[data-needs-script]").forEach((part) => { part.hidden = false; });
document.querySelectorAll("input[data-fills]").forEach((input) => {
  input.addEventListener("change", async () => {
    const file = input.files[0];
    if (file) document.getElementById(input.dataset.fills).value = await file.slice(0, 300000).text();
  });
});

// Selected text of a page can be watched.
document.querySelectorAll("[data-marks]").forEach((text) => {
  const link = document.getElementById(text.dataset.marks);
  if (!link) return;
  // Pressing the link leaves the selection as it is.
  link.addEventListener("mousedown", (event) => event.preventDefault());
  document.addEventListener("selectionchange", () => {
    const selection = document.getSelection();
    const marked = selection.toString().replace(/\s+/g, " ").trim().slice(0, 300);
    const isInside = text.contains(selection.anchorNode) && text.contains(selection.focusNode);
    link.hidden = !marked || !isInside;
    if (link.hidden) return;
    const address = new URL(link.href);
    address.searchParams.set("text", marked);
    link.href = address;
  });
});

// Trying out an operation of the API: the answer is shown below it.
document.querySelectorAll("form[data-try]").forEach((form) => {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const fields = new FormData(form);
    const query = new URLSearchParams();
    let path = `/api/v1${form.dataset.try}`;
    let body;
    for (const [name, value] of fields) {
      if (name === "{id}") path = path.replace(name, encodeURIComponent(value));
      else if (name === "body") body = value;
      else if (value !== "") query.set(name, value);
    }
    const address = query.size ? `${path}?${query}` : path;
    const answer = form.querySelector(".answer");
    answer.hidden = false;
    try {
      const method = form.dataset.method;
      const headers = method === "GET" ? {} : { "content-type": "application/json" };
      const got = await fetch(address, { method, headers, body: method === "GET" ? undefined : body });
      let text = (await got.text()).slice(0, 100000);
      try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* it is not JSON */ }
      answer.textContent = `${method} ${address}\n${got.status} ${got.statusText}\n\n${text}`;
    } catch (error) {
      answer.textContent = String(error);
    }
    form.querySelectorAll("button:disabled").forEach((button) => { button.disabled = false; });
  });
});
