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
        }
      } catch {
        // The program may be restarting: try again.
      }
    }
    setTimeout(refresh, every);
  }
  setTimeout(refresh, every);
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
document.querySelectorAll("[data-only-for]").forEach(followChoice);
document.querySelectorAll("select[data-submit]").forEach((select) => {
  select.addEventListener("change", () => select.form.requestSubmit());
});

// A button pressed once is not pressed twice.
document.addEventListener("submit", (event) => {
  const pressed = event.submitter;
  if (pressed) setTimeout(() => { pressed.disabled = true; }, 0);
});
window.addEventListener("pageshow", () => {
  document.querySelectorAll("button:disabled").forEach((button) => { button.disabled = false; });
});
