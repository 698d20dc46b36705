// Runs first in every worker of a replayed page.
(steady, addresses, texts, page) => {
  steady(self, page.from * 1000, page.seed);
  const native = self.location;
  page = { ...page, host: native.host, origin: native.origin };
  const { isOwn, into, here, out, place } = addresses(page, native, () => native.protocol === "blob:" ? page.base : native.href);
  const isBlob = native.protocol === "blob:";
  const made = isBlob ? native : place(self.WorkerLocation.prototype).made;
  const define = (name, get) => Object.defineProperty(self, name, { configurable: true, get });
  define("__nenrin_location", () => made);
  define("location", () => made);
  if (!isBlob) define("origin", () => here().origin);
  else define("origin", () => page.server || native.origin);
  self.__nenrin_to = (text) => into(text, "js_");
  self.__nenrin_out = out;
  self.__nenrin_where = (thing) => thing;
  self.__nenrin_target = (target) => target;
  const global = self.eval;
  self.__nenrin_text = texts(self, page.origin, isOwn);
  self.__nenrin_eval = (text) => global(self.__nenrin_text(text));
  const nativeFetch = self.fetch;
  const requestUrl = Object.getOwnPropertyDescriptor(Request.prototype, "url").get;
  self.fetch = (input, init) => {
    if (!(input instanceof Request)) return nativeFetch(into(String(input), "oe_"), init);
    const to = into(input.url, "oe_");
    if (to === requestUrl.call(input)) return nativeFetch(input, init);
    if (!input.body) return nativeFetch(new Request(to, input), init);
    return input.arrayBuffer().then((body) => nativeFetch(to, { method: input.method, headers: input.headers,
      mode: input.mode, credentials: input.credentials, redirect: input.redirect, body, ...init }));
  };
  if (self.XMLHttpRequest) {
    const open = XMLHttpRequest.prototype.open;
    XMLHttpRequest.prototype.open = function (method, url, ...rest) {
      return open.call(this, method, into(String(url), "oe_"), ...rest);
    };
  }
  for (const name of ["Response", "Request"]) {
    const found = self[name] && Object.getOwnPropertyDescriptor(self[name].prototype, "url");
    if (found) Object.defineProperty(self[name].prototype, "url", { ...found, get() { return out(found.get.call(this)); } });
  }
  if (self.importScripts) {
    const load = self.importScripts;
    self.importScripts = (...urls) => load.apply(self, urls.map((url) => into(String(url), "js_")));
  }
}
