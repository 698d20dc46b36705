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
