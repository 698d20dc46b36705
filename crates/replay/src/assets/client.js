// Runs first in every replayed page. It sends what scripts ask for into the archive, as the server
// does for links in the page. It is a convenience, not the protection: what it misses is stopped by
// the page's Content-Security-Policy or caught by worker.js.
(() => {
"use strict";

// No directive of a policy stops these, so no window may have them: this one, every frame as soon as
// a script could reach it, and every window that is opened.
const TAKEN = ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport"];
const fenced = new WeakSet();
function strip(view) {
  try {
    for (const name of TAKEN) if (view[name]) Object.defineProperty(view, name, { value: undefined });
    if (!fenced.has(view.Node)) { fenced.add(view.Node); fence(view); }
  } catch { /* A window of another origin cannot be reached by scripts of this one either. */ }
  return view;
}
function stripFrames() { for (let i = 0; i < window.length; i++) strip(window[i]); }

// Links that only connect, which no policy stops either, are made harmless before they are in a document.
const CONNECTS = /preconnect|dns-prefetch/gi;
const connects = (text) => String(text).search(CONNECTS) >= 0;
const markup = Object.getOwnPropertyDescriptor(Element.prototype, "innerHTML");
const holder = document.createElement("template");
// The same markup without such links.
function silent(text) {
  if (!/<link/i.test(text)) return text;
  try {
    markup.set.call(holder, text);
    return silence(holder.content) ? markup.get.call(holder) : text;
  } catch { return text; }
}
function silence(node) {
  let found = false;
  if (!node || !node.querySelectorAll) return found;
  for (const link of /^link$/i.test(node.tagName) ? [node] : node.querySelectorAll("link, template")) {
    if (link.content) { found = silence(link.content) || found; continue; }
    if (!connects(link.rel)) continue;
    link.rel = link.rel.replace(CONNECTS, "");
    link.removeAttribute("href");
    found = true;
  }
  return found;
}
// A beginning of a tag at the end of what is written waits for the rest.
let rest = "";
function whole(texts) {
  const text = rest + texts.join("");
  const cut = /<(l(i(n(k(\s[^>]*)?)?)?)?)?$/i.exec(text);
  rest = cut ? text.slice(cut.index) : "";
  return silent(cut ? text.slice(0, cut.index) : text);
}

// Guards the ways in which scripts of a window make elements and change them.
function fence(view) {
  const wrap = (owner, name, make) => {
    const found = view[owner] && Object.getOwnPropertyDescriptor(view[owner].prototype, name);
    if (!found) return;
    const kind = found.set ? "set" : "value";
    Object.defineProperty(view[owner].prototype, name, { ...found, [kind]: make(found[kind]) });
  };
  const then = (act) => { try { return act(); } finally { stripFrames(); } };
  for (const [owner, names] of [
    ["Node", ["appendChild", "insertBefore", "replaceChild"]],
    ["Element", ["append", "prepend", "before", "after", "replaceWith", "replaceChildren", "insertAdjacentElement", "moveBefore"]],
    ["DocumentFragment", ["append", "prepend", "replaceChildren", "moveBefore"]],
    ["Document", ["append", "prepend", "replaceChildren", "moveBefore"]], ["Range", ["insertNode", "surroundContents"]],
    ["CharacterData", ["before", "after", "replaceWith"]],
  ]) for (const name of names) wrap(owner, name, (native) => function (...nodes) {
    nodes.forEach(silence);
    return then(() => native.apply(this, nodes));
  });
  for (const [owner, name] of [["Element", "innerHTML"], ["Element", "outerHTML"], ["ShadowRoot", "innerHTML"]]) {
    wrap(owner, name, (native) => function (text) { then(() => native.call(this, silent(String(text)))); });
  }
  for (const [owner, name, at] of [
    ["Element", "insertAdjacentHTML", 1], ["Element", "setHTMLUnsafe", 0], ["ShadowRoot", "setHTMLUnsafe", 0],
    ["Range", "createContextualFragment", 0], ["Document", "execCommand", 2],
  ]) wrap(owner, name, (native) => function (...texts) {
    if (typeof texts[at] === "string") texts[at] = silent(texts[at]);
    return then(() => native.apply(this, texts));
  });
  wrap("Document", "write", (native) => function (...texts) { then(() => native.call(this, whole(texts))); });
  wrap("Document", "writeln", (native) => function (...texts) { then(() => native.call(this, whole([...texts, "\n"]))); });
  wrap("HTMLIFrameElement", "srcdoc", (native) => function (text) { native.call(this, fencedDocument(text)); });
  for (const owner of ["HTMLIFrameElement", "HTMLFrameElement", "HTMLObjectElement"]) {
    for (const name of ["contentWindow", "contentDocument"]) {
      const found = view[owner] && Object.getOwnPropertyDescriptor(view[owner].prototype, name);
      if (found) Object.defineProperty(view[owner].prototype, name, { ...found, get() {
        const reached = found.get.call(this);
        if (reached) strip(name === "contentWindow" ? reached : reached.defaultView);
        return reached;
      } });
    }
  }
  // No link that is in a document becomes one that connects.
  const harmless = (native) => function (...values) {
    return native.apply(this, values.map((value) => typeof value === "string" ? value.replace(CONNECTS, "x") : value));
  };
  wrap("HTMLLinkElement", "rel", harmless);
  wrap("DOMTokenList", "value", harmless);
  for (const name of ["add", "replace", "toggle"]) wrap("DOMTokenList", name, harmless);
  for (const name of ["setAttribute", "setAttributeNS"]) wrap("Element", name, (native) => function (...values) {
    return (/^link$/i.test(this.tagName) ? harmless(native) : native).apply(this, values);
  });
  for (const name of ["value", "nodeValue", "textContent"]) wrap("Attr", name, harmless);
  for (const name of ["nodeValue", "textContent"]) wrap("Node", name, (native) => function (value) {
    native.call(this, this.nodeType === 2 ? String(value).replace(CONNECTS, "x") : value);
  });
}
const fencedDocument = (text) => '<script src="/_nenrin/client.js"></' + "script>" + silent(String(text));
strip(window);

// Documents inside of an address are shown with this script in them, which their windows lack otherwise.
const INSIDE = /^\s*(data|blob):/i;
const read = window.fetch;
function showInside(frame, address) {
  const plain = (text) => "<pre>" + text.replace(/&/g, "&amp;").replace(/</g, "&lt;") + "</pre>";
  read.call(window, address).then((answer) => answer.text().then((text) => {
    frame.srcdoc = /html|svg|^$/i.test(answer.headers.get("content-type") || "") ? text : plain(text);
  })).catch(() => {});
}

const place = /^\/web\/(\d{14})([a-z]{2}_)?\/(https?:\/\/[^]*)$/.exec(location.pathname + location.search);
if (!place || window.top === undefined) return;
const [, stamp, mod = "", address] = place;
const here = new URL(address);
const home = location.host;
const OWN = /^\/(web|_nenrin)\//;

// Where a URL leads inside the archive; what is no URL of the web, or leads there already, stays.
function into(reference, kind) {
  let url;
  try { url = new URL(reference, document.baseURI); } catch { return reference; }
  if (url.protocol !== "http:" && url.protocol !== "https:") return reference;
  const as = kind === undefined ? mod : kind;
  if (url.host !== home) return "/web/" + stamp + as + "/" + url.href;
  if (OWN.test(url.pathname)) return reference;
  return "/web/" + stamp + as + "/" + here.origin + url.pathname + url.search + url.hash;
}
function leaves(text) {
  const first = text.trimStart();
  if (/^[\\/](?![\\/])/.test(first)) return !OWN.test(first);
  return /^(https?:)?[\\/]{2}/i.test(first.replace(/[\t\n\r]/g, "")) || /^\s*https?:/i.test(text);
}
const fixed = (text, kind) => typeof text === "string" && leaves(text) ? into(text, kind) : text;
const fixedSet = (text) => String(text).replace(/(^|,)(\s*)([^\s,][^\s]*)/g,
  (all, comma, space, url) => comma + space + fixed(url, "im_"));
const fixedStyle = (text) => text
  .replace(/url\(\s*(["']?)([^"')]+)\1\s*\)/gi, (all, quote, url) =>
    leaves(url) ? "url(" + quote + into(url, "im_") + quote + ")" : all)
  .replace(/@import\s+(["'])([^"']+)\1/gi, (all, quote, url) =>
    leaves(url) ? "@import " + quote + into(url, "cs_") + quote : all);

// Attributes that load or lead, by element.
const KINDS = {
  IMG: { src: "im_", srcset: fixedSet }, SCRIPT: { src: "js_" }, LINK: { href: "oe_", imagesrcset: fixedSet },
  IFRAME: { src: "if_" }, FRAME: { src: "if_" }, EMBED: { src: "oe_" }, OBJECT: { data: "oe_" },
  SOURCE: { src: "oe_", srcset: fixedSet }, AUDIO: { src: "oe_" }, VIDEO: { src: "oe_", poster: "im_" },
  TRACK: { src: "oe_" }, INPUT: { src: "im_", formaction: mod }, A: { href: mod }, AREA: { href: mod },
  FORM: { action: mod }, BUTTON: { formaction: mod }, BODY: { background: "im_" }, TABLE: { background: "im_" },
  TD: { background: "im_" }, IMAGE: { href: "im_", "xlink:href": "im_" }, USE: { href: "im_", "xlink:href": "im_" },
  BASE: { href: mod },
};
const DROPPED = new Set(["ping", "integrity", "attributionsrc"]);
function fixedAttribute(element, name, value) {
  const low = name.toLowerCase();
  if (low === "style") return fixedStyle(String(value));
  let kind = KINDS[element.tagName.toUpperCase()]?.[low];
  if (kind === undefined) return value;
  if (element.tagName === "IFRAME" && INSIDE.test(value)) {
    showInside(element, String(value).trim());
    return "about:blank";
  }
  if (element.tagName === "LINK" && /stylesheet/i.test(element.rel || "")) kind = "cs_";
  return typeof kind === "function" ? kind(value) : fixed(String(value), kind);
}

const setAttribute = Element.prototype.setAttribute;
Element.prototype.setAttribute = function (name, value) {
  if (DROPPED.has(String(name).toLowerCase())) return;
  if (this.tagName === "IFRAME" && /^srcdoc$/i.test(name)) return setAttribute.call(this, name, fencedDocument(value));
  if (this.tagName === "SCRIPT" && /^type$/i.test(name) && /speculationrules/i.test(value)) value = "text/plain";
  return setAttribute.call(this, name, fixedAttribute(this, String(name), value));
};
function patchProperty(owner, name) {
  const found = owner && Object.getOwnPropertyDescriptor(owner.prototype, name);
  if (!found || !found.set) return;
  Object.defineProperty(owner.prototype, name, { ...found, set(value) {
    found.set.call(this, fixedAttribute(this, name === "imageSrcset" ? "imagesrcset" : name.toLowerCase(), value));
  } });
}
for (const [owner, names] of [
  [window.HTMLImageElement, ["src", "srcset"]], [window.HTMLScriptElement, ["src"]],
  [window.HTMLLinkElement, ["href", "imageSrcset"]], [window.HTMLIFrameElement, ["src"]],
  [window.HTMLFrameElement, ["src"]], [window.HTMLEmbedElement, ["src"]], [window.HTMLObjectElement, ["data"]],
  [window.HTMLSourceElement, ["src", "srcset"]], [window.HTMLMediaElement, ["src"]],
  [window.HTMLVideoElement, ["poster"]], [window.HTMLTrackElement, ["src"]], [window.HTMLInputElement, ["src", "formAction"]],
  [window.HTMLFormElement, ["action"]], [window.HTMLAnchorElement, ["href"]], [window.HTMLAreaElement, ["href"]],
]) for (const name of names) patchProperty(owner, name);
const scriptType = Object.getOwnPropertyDescriptor(HTMLScriptElement.prototype, "type");
Object.defineProperty(HTMLScriptElement.prototype, "type", { ...scriptType, set(value) {
  scriptType.set.call(this, /speculationrules/i.test(value) ? "text/plain" : value);
} });

// Markup that scripts add as text: what it loads is refused by the policy first, then put right here.
function mend(element) {
  const kinds = KINDS[element.tagName.toUpperCase()];
  for (const name of kinds ? Object.keys(kinds) : []) {
    const value = element.getAttribute(name);
    if (value === null) continue;
    const better = fixedAttribute(element, name, value);
    if (better !== value) setAttribute.call(element, name, better);
  }
  const style = element.getAttribute("style");
  if (style && /url\(/i.test(style)) {
    const better = fixedStyle(style);
    if (better !== style) setAttribute.call(element, "style", better);
  }
  for (const name of DROPPED) if (element.hasAttribute(name)) element.removeAttribute(name);
  if (element.tagName === "STYLE" && /url\(|@import/i.test(element.textContent)) {
    const better = fixedStyle(element.textContent);
    if (better !== element.textContent) element.textContent = better;
  }
}
const WATCHED = "[src],[href],[srcset],[poster],[data],[action],[background],[style],[ping],style,image,use";
new MutationObserver((changes) => {
  for (const change of changes) {
    if (change.type === "attributes") { mend(change.target); continue; }
    for (const node of change.addedNodes) {
      if (node.nodeType === 3 && node.parentElement?.tagName === "STYLE") mend(node.parentElement);
      if (node.nodeType !== 1) continue;
      mend(node);
      if (node.firstElementChild) node.querySelectorAll(WATCHED).forEach(mend);
    }
  }
}).observe(document, { subtree: true, childList: true, attributes: true,
  attributeFilter: ["src", "href", "srcset", "poster", "data", "action", "formaction", "background", "style", "ping"] });
const TAGS = /(<(?:script|img|iframe|frame|link|embed|source|video|audio|input)\b[^>]*?\s(?:src|href)\s*=\s*)(["']?)([^"'\s>]+)/gi;
const mended = (text) => String(text).replace(TAGS, (all, start, quote, url) =>
  leaves(url) ? start + quote + into(url, /^<script/i.test(start) ? "js_" : /^<i?frame/i.test(start) ? "if_" : "oe_") : all);
for (const name of ["write", "writeln"]) {
  const native = Document.prototype[name];
  Document.prototype[name] = function (...texts) { return native.apply(this, texts.map(mended)); };
}

// Requests.
const nativeFetch = window.fetch;
window.fetch = function (input, init) {
  if (input instanceof Request) {
    const to = into(input.url, "oe_");
    return nativeFetch.call(window, to === input.url ? input : new Request(to, input), init);
  }
  return nativeFetch.call(window, into(String(input), "oe_"), init);
};
const open = XMLHttpRequest.prototype.open;
XMLHttpRequest.prototype.open = function (method, url, ...rest) {
  return open.call(this, method, into(String(url), "oe_"), ...rest);
};
navigator.sendBeacon = () => true;
for (const name of ["Worker", "SharedWorker", "EventSource"]) {
  const Native = window[name];
  if (!Native) continue;
  window[name] = new Proxy(Native, { construct: (target, [url, ...rest]) =>
    new target(fixed(String(url), name === "EventSource" ? "oe_" : "js_"), ...rest) });
}
const worker = navigator.serviceWorker;
const register = worker && worker.register.bind(worker);
if (worker) worker.register = () => Promise.reject(new DOMException("not in an archive", "SecurityError"));

// Places.
for (const name of ["pushState", "replaceState"]) {
  const native = History.prototype[name];
  History.prototype[name] = function (state, title, url) {
    return native.call(this, state, title, url == null ? url : into(String(url)));
  };
}
const nativeOpen = window.open;
window.open = (url, ...rest) => {
  const opened = nativeOpen.call(window, url ? into(String(url), "") : url, ...rest);
  return opened && strip(opened);
};
if (window.navigation) navigation.addEventListener("navigate", (event) => {
  const to = event.destination.url;
  const better = into(to);
  if (better === to || !event.cancelable || event.formData) return;
  event.preventDefault();
  setTimeout(() => location.assign(better));
});
for (const kind of ["click", "auxclick"]) document.addEventListener(kind, (event) => {
  for (const node of event.composedPath()) if (node.tagName === "A" || node.tagName === "AREA") { mend(node); break; }
}, true);
document.addEventListener("submit", (event) => {
  mend(event.target);
  if (event.submitter) mend(event.submitter);
}, true);

// Cookies stay in the page: none was archived, and none may reach another site.
const jar = new Map();
Object.defineProperty(Document.prototype, "cookie", { configurable: true,
  get: () => [...jar].map(([name, value]) => name + "=" + value).join("; "),
  set(text) {
    const [pair, ...rules] = String(text).split(";");
    const at = pair.indexOf("=");
    const name = pair.slice(0, Math.max(at, 0)).trim();
    const gone = rules.some((rule) => /^\s*max-age\s*=\s*(0|-)/i.test(rule) ||
      (/^\s*expires\s*=/i.test(rule) && Date.parse(rule.split("=")[1]) < Date.now()));
    if (gone) jar.delete(name); else if (jar.size < 100) jar.set(name, pair.slice(at + 1).trim());
  } });

// The worker, for what is asked for by paths from the root. It needs a secure context.
if (register && window.isSecureContext) register("/_nenrin/worker.js", { scope: "/" }).catch(() => {});

// The banner.
function banner() {
  const host = document.querySelector("nenrin-banner");
  if (!host) return;
  const template = host.querySelector("template");
  const root = host.shadowRoot || host.attachShadow({ mode: "open" });
  if (template) root.append(template.content);
  if (window.top !== window.self) { host.remove(); return; }
  root.querySelector(".close").addEventListener("click", (event) => { event.preventDefault(); host.remove(); });
  nativeFetch("/_nenrin/span/" + stamp + "/" + address).then((answer) => answer.json()).then((span) => {
    for (const [name, date] of [["prev", span.previous], ["next", span.next]]) {
      if (!date) root.querySelector("." + name).setAttribute("aria-disabled", "true");
    }
    const shown = root.querySelector(".span");
    shown.textContent = span.text;
    shown.title = span.detail;
    shown.classList.toggle("wide", span.wide);
  }).catch(() => {});
}
if (document.readyState === "complete") banner();
else window.addEventListener("load", () => setTimeout(banner));
})();
