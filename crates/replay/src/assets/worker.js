// Stands between replayed pages and the network: a request that would leave the archive, or that
// names a path of the archived server as if it were ours, is answered from the archive.
"use strict";
const PAGE = /^\/web\/(\d{14})[a-z_]*\/(https?:\/\/[^]*)$/;
const KINDS = { image: "im_", script: "js_", style: "cs_", iframe: "if_", frame: "if_", worker: "js_",
  sharedworker: "js_", document: "" };

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

function isOurs(url, request) {
  if (url.origin !== self.location.origin) return false;
  if (/^\/(web|_nenrin)\//.test(url.pathname)) return true;
  // A person may leave a page for our other pages; its scripts and images have no business there.
  return request.mode === "navigate" && request.destination === "document"
    && /^\/(diff\/|cdx|robots\.txt|$)/.test(url.pathname);
}

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (url.protocol !== "http:" && url.protocol !== "https:") return;
  if (!isOurs(url, event.request)) event.respondWith(fromArchive(event, url));
});

async function pageOf(event) {
  const client = event.clientId ? await self.clients.get(event.clientId) : undefined;
  for (const text of [event.request.referrer, client && client.url]) {
    if (!text) continue;
    const from = new URL(text);
    const found = from.origin === self.location.origin && PAGE.exec(from.pathname + from.search);
    if (found) return { stamp: found[1], origin: new URL(found[2]).origin };
  }
}

async function fromArchive(event, url) {
  const request = event.request;
  const page = await pageOf(event);
  const isHere = url.origin === self.location.origin;
  if (!page) return isHere ? fetch(request) : Response.error();
  if (request.method !== "GET" && request.method !== "HEAD") return new Response(null, { status: 405 });
  const kind = KINDS[request.destination] ?? "oe_";
  const address = isHere ? page.origin + url.pathname + url.search : url.href.replace(/#.*/, "");
  const to = "/web/" + page.stamp + kind + "/" + address;
  if (request.mode === "navigate") return Response.redirect(to, 302);
  const headers = new Headers();
  for (const name of ["range", "accept"]) {
    if (request.headers.has(name)) headers.set(name, request.headers.get(name));
  }
  return fetch(to, { method: request.method, headers, credentials: "omit", cache: "default" });
}
