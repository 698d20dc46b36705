// Runs first in every replayed page. It sends what scripts ask for into the archive, as the server
// does for links in the page. It is a convenience, not the protection: what it misses is stopped by
// the page's Content-Security-Policy.

// What is shown: its date and server, the moment at which its clock starts, a seed for chance.
const script = document.currentScript;
const page = { ...(script ? script.dataset : {}), host: location.host, origin: location.origin };
page.mod = (/^\/web\/\d{14}([a-z]{2}_)\//.exec(location.pathname) || [])[1] || "";
if (script) script.remove();
if (!page.at || window.top === undefined) return;

// Pages replace what they like: these are taken before they can.
const { construct } = Reflect;
const nativePrevent = Event.prototype.preventDefault;
const nativeFetch = window.fetch;
const nativeBlob = window.Blob;
const NativeDate = window.Date;
const getAttribute = Element.prototype.getAttribute;
const later = window.setTimeout;
const selected = Document.prototype.getSelection;
const baseOf = Object.getOwnPropertyDescriptor(Node.prototype, "baseURI").get;
const native = window.location;
const { isOwn, here, into, leaves, out, place } = addresses(page, native, () => baseOf.call(document));
const rewritten = texts(window, native.origin, isOwn);

// No directive of a policy stops these, so no window may have them: this one, every frame as soon as
// a script could reach it, and every window that is opened.
const TAKEN = ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport"];
const fenced = new WeakSet();
const cookieless = new WeakSet();
function strip(view) {
  try {
    for (const name of TAKEN) if (view[name]) Object.defineProperty(view, name, { value: undefined });
    if (!fenced.has(view.Node)) {
      fenced.add(view.Node);
      // A page in a frame has this script itself.
      if (view === window || !("__nenrin_location" in view)) { fence(view); keepInside(view); }
    }
    // Native cookies of a frame would be shared by all archived sites.
    if (view !== window && !cookieless.has(view.Document)) {
      cookieless.add(view.Document);
      Object.defineProperty(view.Document.prototype, "cookie", { configurable: true,
        get: () => document.cookie, set: (text) => { document.cookie = text; } });
      Object.defineProperty(view, "cookieStore", { value: undefined, configurable: true });
    }
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
  for (const link of /^(link|script)$/i.test(node.tagName) ? [node] : node.querySelectorAll("link, template, script")) {
    if (link.content) { found = silence(link.content) || found; continue; }
    if (/^script$/i.test(link.tagName)) { prepare(link); continue; }
    if (!connects(link.rel)) continue;
    link.rel = link.rel.replace(CONNECTS, "");
    link.removeAttribute("href");
    found = true;
  }
  return found;
}
// A script whose text is run as soon as it is in a document.
const runs = (script) => script.localName === "script" && !script.hasAttribute("src") && /^$|^module$|(java|ecma|j)script/i.test(script.type);
const scriptText = Object.getOwnPropertyDescriptor(HTMLScriptElement.prototype, "text");
function prepare(script) {
  if (script.isConnected || !runs(script) || !scriptText) return;
  const text = scriptText.get.call(script);
  const better = rewritten(text);
  if (better !== text) scriptText.set.call(script, better);
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
    native.call(this, this.nodeType === 2 ? String(value).replace(CONNECTS, "x") : running(this, value));
  });
  for (const name of ["text", "textContent", "innerText"]) wrap("HTMLScriptElement", name, (native) => function (value) {
    native.call(this, running(this, value));
  });
}
// The text of a script that is in the document already runs at once.
const running = (node, text) => node.localName === "script" && node.isConnected && runs(node) ? rewritten(String(text)) : text;
const TOLD = ["at", "from", "seed", "server", "home", "bare"].filter((name) => page[name] !== undefined)
  .map((name) => ` data-${name}="${page[name].replace(/[&"<]/g, "")}"`).join("");
const fencedDocument = (text) => `<script src="/_nenrin/client.js"${TOLD}></` + "script>" + silent(String(text));

// No policy stops a window from leaving, so every navigation that would is led back inside. It holds for this
// window, for frames without a script of ours in them, and for windows that scripts open.
function keepInside(view) {
  const inside = place(view.Location.prototype);
  const leadsTo = view.navigation && Object.getOwnPropertyDescriptor(view.NavigationDestination.prototype, "url").get;
  if (view.navigation) view.navigation.addEventListener("navigate", (event) => {
    const to = leadsTo.call(event.destination);
    const better = into(to);
    if (better === to || !event.cancelable || event.formData) return;
    nativePrevent.call(event);
    later(() => view.location.assign(better));
  });
  const open = view.open;
  view.open = (url, ...rest) => {
    const opened = open.call(view, url ? into(String(url), "") : url, ...rest);
    return opened && strip(opened);
  };
  const located = { configurable: true, get: () => view === window ? inside.made : view.location, set: (url) => { if (view === window) inside.go(url); else view.location.href = into(String(url)); } };
  Object.defineProperty(view, "__nenrin_location", located);
  Object.defineProperty(view.Document.prototype, "__nenrin_location", located);
  Object.defineProperty(view, "__nenrin_top", { configurable: true, get: () => archivedTop(view) });
  const names = { to: (text) => into(text, "js_"), out, where, target, text: (text) => rewritten(text), eval: (text) => global(rewritten(text)) };
  const global = view.eval;
  for (const name in names) Object.defineProperty(view, "__nenrin_" + name, { configurable: true, value: names[name] });
  steady(view, Number(page.from) * 1000, Number(page.seed));
}
// A window or document as scripts see it: its location is the archived one. Everything else stays.
function where(thing) {
  if (thing === null || (typeof thing !== "object" && typeof thing !== "function")) return thing;
  try {
    if (!("__nenrin_location" in thing)) return thing;
  } catch { return isWindow(thing) ? far(thing) : thing; }
  return {
    get location() { return thing.__nenrin_location; }, set location(url) { thing.__nenrin_location = url; },
    get top() { return "__nenrin_top" in thing ? thing.__nenrin_top : thing.top; }, set top(value) { thing.top = value; },
  };
}
const isWindow = (thing) => { try { return thing.window === thing; } catch { return false; } };
// A window of another archived server can be led elsewhere, and not be read.
function far(view) {
  const at = { replace: (url) => view.location.replace(into(String(url))), assign: (url) => { view.location.href = into(String(url)); } };
  Object.defineProperty(at, "href", { get: () => view.location.href, set: at.assign });
  return { get location() { return at; }, set location(url) { at.assign(url); }, get top() { return archivedTop(window); } };
}
// Where a message goes: the origin that stands for the archived one.
function target(to) {
  const named = (origin) => typeof origin === "string" && /^https?:/i.test(origin) && isOwn ? new URL(into(origin), native.href).origin : origin;
  if (to && typeof to === "object" && typeof to.targetOrigin === "string") return { ...to, targetOrigin: named(to.targetOrigin) };
  return named(to);
}
// The windows around this one that are archived, too: our own pages may show it in a frame.
const isArchived = (origin) => isOwn ? origin.endsWith("." + page.home.split("://")[1]) : origin === "null";
function archivedTop(view) {
  const around = native.ancestorOrigins || [];
  let found = view;
  for (let i = 0; i < around.length && isArchived(around[i]); i++) found = nativeParent.call(found);
  return view === window ? found : view.top;
}
const parentOf = Object.getOwnPropertyDescriptor(window, "parent").get;
const nativeParent = { call: (view) => { try { return parentOf.call(view); } catch { return view.parent; } } };
strip(window);

// Documents inside of an address are shown with this script in them, which their windows lack otherwise.
const INSIDE = /^\s*(data|blob):/i;
function showInside(frame, address) {
  const plain = (text) => "<pre>" + text.replace(/&/g, "&amp;").replace(/</g, "&lt;") + "</pre>";
  nativeFetch.call(window, address).then((answer) => answer.text().then((text) => {
    frame.srcdoc = /html|svg|^$/i.test(answer.headers.get("content-type") || "") ? text : plain(text);
  })).catch(() => {});
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
  TRACK: { src: "oe_" }, INPUT: { src: "im_", formaction: page.mod }, A: { href: page.mod }, AREA: { href: page.mod },
  FORM: { action: page.mod }, BUTTON: { formaction: page.mod }, BODY: { background: "im_" }, TABLE: { background: "im_" },
  TD: { background: "im_" }, IMAGE: { href: "im_", "xlink:href": "im_" }, USE: { href: "im_", "xlink:href": "im_" },
  BASE: { href: page.mod },
};
const SCRIPT = /^\s*javascript:/i;
const DROPPED = new Set(["ping", "integrity", "attributionsrc"]);
function fixedAttribute(element, name, value) {
  const low = name.toLowerCase();
  if (low === "style") return fixedStyle(String(value));
  if (low.startsWith("on")) return rewritten(String(value), "?handler");
  let kind = KINDS[element.tagName.toUpperCase()]?.[low];
  if (kind === undefined) return value;
  if (low === "href" && SCRIPT.test(value)) return "javascript:" + rewritten(String(value).replace(SCRIPT, ""));
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
  Object.defineProperty(owner.prototype, name, { ...found, get() { return out(found.get.call(this)); }, set(value) {
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
    const value = getAttribute.call(element, name);
    if (value === null) continue;
    const better = fixedAttribute(element, name, value);
    if (better !== value) setAttribute.call(element, name, better);
  }
  const style = getAttribute.call(element, "style");
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
// Handlers in such markup. Those that came with the page were rewritten by the server.
function mendAdded(element) {
  mend(element);
  if (document.readyState !== "loading") for (const { name, value } of [...element.attributes]) {
    const better = /^on/i.test(name) ? rewritten(value, "?handler") : value;
    if (better !== value) setAttribute.call(element, name, better);
  }
}
const WATCHED = "[src],[href],[srcset],[poster],[data],[action],[background],[style],[ping],style,image,use,[onclick],[onload],[onerror]," +
  "[onchange],[oninput],[onsubmit],[onfocus],[onblur],[onkeydown],[onkeyup],[onmousedown],[onmouseup],[onmouseover],[onmouseout]";
new MutationObserver((changes) => {
  for (const change of changes) {
    if (change.type === "attributes") { mend(change.target); continue; }
    for (const node of change.addedNodes) {
      if (node.nodeType === 3 && node.parentElement?.tagName === "STYLE") mend(node.parentElement);
      if (node.nodeType !== 1) continue;
      mendAdded(node);
      if (node.firstElementChild) node.querySelectorAll(WATCHED).forEach(mendAdded);
    }
  }
}).observe(document, { subtree: true, childList: true, attributes: true,
  attributeFilter: ["src", "href", "srcset", "poster", "data", "action", "formaction", "background", "style", "ping"] });
const TAGS = /(<(?:script|img|iframe|frame|link|embed|source|video|audio|input)\b[^>]*?\s(?:src|href)\s*=\s*)(["']?)([^"'\s>]+)/gi;
const INLINE = /(<script\b(?![^>]*\ssrc\s*=)[^>]*>)([^]*?)(<\/script)/gi;
const mended = (text) => String(text).replace(INLINE, (all, start, script, end) =>
  /\stype\s*=(?!\s*["']?(module|[a-z]+\/(java|ecma|j)script))/i.test(start) ? all : start + rewritten(script) + end).replace(TAGS, (all, start, quote, url) =>
  leaves(url) ? start + quote + into(url, /^<script/i.test(start) ? "js_" : /^<i?frame/i.test(start) ? "if_" : "oe_") : all);
for (const name of ["write", "writeln"]) {
  const native = Document.prototype[name];
  Document.prototype[name] = function (...texts) { return native.apply(this, texts.map(mended)); };
}

// Requests.
const requestUrl = Object.getOwnPropertyDescriptor(Request.prototype, "url").get;
window.fetch = function (input, init) {
  if (input instanceof Request) {
    const to = into(input.url, "oe_");
    if (to === requestUrl.call(input)) return nativeFetch.call(window, input, init);
    if (!input.body) return nativeFetch.call(window, new Request(to, input), init);
    // A body that is read while it is sent needs another protocol.
    return input.arrayBuffer().then((body) => nativeFetch.call(window, to, { method: input.method, headers: input.headers,
      mode: input.mode === "navigate" ? "same-origin" : input.mode, credentials: input.credentials, redirect: input.redirect, body, ...init }));
  }
  return nativeFetch.call(window, into(String(input), "oe_"), init);
};
const open = XMLHttpRequest.prototype.open;
XMLHttpRequest.prototype.open = function (method, url, ...rest) {
  return open.call(this, method, into(String(url), "oe_"), ...rest);
};
navigator.sendBeacon = () => true;
const blobs = new Map();
const nativeUrl = URL.createObjectURL;
URL.createObjectURL = (thing) => {
  const made = nativeUrl.call(URL, thing);
  if (thing instanceof nativeBlob && blobs.size < 1000) blobs.set(made, thing);
  return made;
};
// A worker made of text gets the same beginning as one that is loaded.
function begun(url) {
  const text = blobs.get(url);
  if (!text) return fixed(url, "js_");
  const told = JSON.stringify({ ...page, base: baseOf.call(document) });
  return nativeUrl.call(URL, new nativeBlob([`(${inWorker})(${steady},${addresses},${texts},${told});`, text], { type: "text/javascript" }));
}
for (const name of ["Worker", "SharedWorker", "EventSource"]) {
  const Native = window[name];
  if (!Native) continue;
  window[name] = new Proxy(Native, { construct: (target, [url, ...rest], made) =>
    construct(target, [name === "EventSource" ? fixed(String(url), "oe_") : begun(String(url)), ...rest], made) });
}
try {
  navigator.serviceWorker.register = () => Promise.reject(new DOMException("not in an archive", "SecurityError"));
} catch { /* There are none without an origin. */ }

// Places.
for (const name of ["pushState", "replaceState"]) {
  const native = History.prototype[name];
  History.prototype[name] = function (state, title, url) {
    return native.call(this, state, title, url == null ? url : into(String(url)));
  };
}
for (const kind of ["click", "auxclick"]) document.addEventListener(kind, (event) => {
  for (const node of event.composedPath()) if (node.tagName === "A" || node.tagName === "AREA") { mend(node); break; }
}, true);
document.addEventListener("submit", (event) => {
  mend(event.target);
  if (event.submitter) mend(event.submitter);
}, true);

// Links outside of a document are activated without any listener seeing it.
const clicked = HTMLElement.prototype.click;
HTMLElement.prototype.click = function () { if (/^(a|area)$/i.test(this.tagName)) mend(this); return clicked.call(this); };
const dispatch = EventTarget.prototype.dispatchEvent;
EventTarget.prototype.dispatchEvent = function (event) {
  if (event instanceof MouseEvent && this instanceof Element) {
    const link = this.closest("a, area");
    if (link) mend(link);
  }
  return dispatch.call(this, event);
};

// What the page reads of itself is the archived address.
const said = (owner, name, read, write) => {
  const found = Object.getOwnPropertyDescriptor(owner, name);
  if (found && found.configurable && found.get) Object.defineProperty(owner, name, {
    ...found, get() { return read(found.get.call(this), this); }, ...(write ? { set: write } : {}) });
};
for (const name of ["URL", "documentURI"]) said(Document.prototype, name, (text, of) => of === document ? here().href : out(text));
said(Document.prototype, "domain", () => here().hostname, () => {});
said(Document.prototype, "referrer", out);
said(Node.prototype, "baseURI", out);
for (const owner of [HTMLAnchorElement, HTMLAreaElement]) {
  const href = Object.getOwnPropertyDescriptor(owner.prototype, "href").get;
  for (const name of ["origin", "protocol", "host", "hostname", "port"]) {
    said(owner.prototype, name, (text, of) => { try { return new URL(href.call(of))[name]; } catch { return text; } });
  }
  owner.prototype.toString = function () { return href.call(this); };
}
for (const [owner, name] of [[Response, "url"], [Request, "url"], [XMLHttpRequest, "responseURL"],
  [HTMLImageElement, "currentSrc"], [HTMLMediaElement, "currentSrc"], [MessageEvent, "origin"], [StorageEvent, "url"], [StyleSheet, "href"],
  [HashChangeEvent, "oldURL"], [HashChangeEvent, "newURL"], [ErrorEvent, "filename"], [PerformanceEntry, "name"],
  [window.NavigationHistoryEntry, "url"], [window.NavigationDestination, "url"]]) {
  if (!owner) continue;
  said(owner.prototype, name, out);
}
Element.prototype.getAttribute = function (name) {
  const value = getAttribute.call(this, name);
  return value && isOwn ? out(value) : value;
};
if (isOwn) said(window, "origin", () => here().origin);
said(window, "parent", (found) => archivedTop(window) === window ? window : found);
const post = window.postMessage;
window.postMessage = function (message, to, ...rest) {
  return post.call(window, message, ...(arguments.length > 1 ? [target(to)] : []), ...rest);
};
try { delete window.cookieStore; Object.defineProperty(window, "cookieStore", { value: undefined, configurable: true }); } catch { /* There is none. */ }

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

// Text that the reader selects can be watched: the bar has a link for it.
function onMarked(show) {
  let last = "";
  document.addEventListener("selectionchange", () => {
    const text = String(selected.call(document) || "").replace(/\s+/g, " ").trim();
    const short = [...text.slice(0, 600)].slice(0, 300).join("");
    if (short !== last) show(last = short);
  });
}
// On the shared origin the bar is in the page around this one.
if (!isOwn && window.top !== window.self) {
  onMarked((marked) => parentOf.call(window).postMessage({ nenrin: { marked } }, "*"));
}

// The banner.
function banner() {
  const host = document.querySelector("nenrin-banner");
  if (!host) return;
  const template = host.querySelector("template");
  const root = host.shadowRoot || host.attachShadow({ mode: "open" });
  if (template) root.append(template.content);
  if (window.top !== window.self) { host.remove(); return; }
  const local = root.querySelector(".local");
  const at = new NativeDate(Number(local.dataset.s) * 1000);
  if (at.getTimezoneOffset() !== 0) local.textContent = " (" + at.toLocaleString(undefined, { timeZoneName: "short" }) + ")";
  root.querySelector(".close").addEventListener("click", (event) => { event.preventDefault(); host.remove(); });
  const watch = root.querySelector(".watch");
  const form = getAttribute.call(watch, "href");
  // Pressing the link leaves the selection as it is.
  watch.addEventListener("mousedown", (event) => nativePrevent.call(event));
  onMarked((text) => {
    watch.hidden = !text;
    setAttribute.call(watch, "href", form + "&text=" + encodeURIComponent(text.toWellFormed()));
  });
  nativeFetch.call(window, "/_nenrin/span/" + page.at + "/" + host.dataset.url).then((answer) => answer.json()).then((span) => {
    for (const [name, date] of [["prev", span.previous], ["next", span.next], ["changed", span.previous]]) {
      if (!date) root.querySelector("." + name).setAttribute("aria-disabled", "true");
    }
    const shown = root.querySelector(".span");
    shown.textContent = span.text;
    shown.title = span.detail;
    shown.classList.toggle("wide", span.wide);
    const warning = root.querySelector(".warning");
    if (span.warning) { warning.textContent = span.warning; warning.hidden = false; }
  }).catch(() => {});
}
if (document.readyState === "complete") banner();
else window.addEventListener("load", () => setTimeout(banner));

// One of two versions beside each other: it scrolls with the other, and shows its changes one by one.
if (/^\/(_nenrin\/)?diff\//.test(native.pathname) && window.top !== window.self) {
  const around = parentOf.call(window);
  const tell = (message) => around.postMessage({ nenrin: message }, "*");
  const length = () => Math.max(1, document.documentElement.scrollHeight - innerHeight);
  let led = false;
  const marks = () => document.querySelectorAll("nenrin-mark");
  addEventListener("scroll", () => { if (led) led = false; else tell({ scrolled: scrollY / length() }); }, { passive: true });
  addEventListener("message", (event) => {
    const told = event.source === around && event.data && event.data.nenrin;
    if (!told) return;
    if (told.hello) tell({ marks: marks().length });
    if (typeof told.scroll === "number") { led = true; scrollTo(0, told.scroll * length()); }
    if (typeof told.change === "number") {
      const mark = marks()[told.change];
      led = true;
      if (mark) mark.scrollIntoView({ block: "center" });
    }
  });
  addEventListener("load", () => tell({ marks: marks().length }));
}
