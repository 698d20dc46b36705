// Two versions beside each other: their frames scroll together, and buttons lead from change to change.
"use strict";
(() => {
  const frames = [...document.querySelectorAll(".sides iframe")];
  const status = document.querySelector(".changes output");
  const counts = new Map();
  let at = -1;
  const say = (frame, message) => frame.contentWindow.postMessage({ nenrin: message }, "*");
  const indexOf = (source) => frames.findIndex((frame) => frame.contentWindow === source);
  const most = () => Math.max(0, ...counts.values());
  function show() {
    if (counts.size < frames.length) return;
    status.textContent = most() === 0 ? status.dataset.none : (at < 0 ? "" : (at + 1) + " / ") + most();
    document.querySelectorAll(".changes button").forEach((button) => { button.disabled = most() === 0; });
  }
  window.addEventListener("message", (event) => {
    const from = indexOf(event.source);
    const told = event.data && event.data.nenrin;
    if (from < 0 || !told) return;
    if (typeof told.marks === "number") { counts.set(from, told.marks); show(); }
    if (typeof told.scrolled === "number") frames.forEach((frame, i) => { if (i !== from) say(frame, { scroll: told.scrolled }); });
  });
  document.querySelectorAll(".changes button").forEach((button) => button.addEventListener("click", () => {
    const step = Number(button.value);
    at = (at + step + most()) % most();
    show();
    frames.forEach((frame, i) => say(frame, { change: Math.min(at, (counts.get(i) || 1) - 1) }));
  }));
  // A frame may have been loaded before this script.
  frames.forEach((frame) => say(frame, { hello: true }));
})();
