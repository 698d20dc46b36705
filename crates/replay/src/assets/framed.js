// The page around an archived one: text that is selected in the frame can be watched.
"use strict";
(() => {
  const frame = document.querySelector("iframe");
  const link = document.querySelector(".watch");
  // Pressing the link leaves the selection as it is.
  link.addEventListener("mousedown", (event) => event.preventDefault());
  window.addEventListener("message", (event) => {
    const told = event.source === frame.contentWindow && event.data && event.data.nenrin;
    if (!told || typeof told.marked !== "string") return;
    link.hidden = !told.marked;
    const address = new URL(link.href);
    address.searchParams.set("text", told.marked.slice(0, 300));
    link.href = address;
  });
})();
