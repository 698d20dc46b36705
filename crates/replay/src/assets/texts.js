// Scripts that are made of text while a window or worker runs (`eval`, `new Function`, timers) are rewritten as those
// that are loaded. Gives a function that does it.
(view, origin, isOwn) => {
  const Request = view.XMLHttpRequest;
  const { open, send } = Request ? Request.prototype : {};
  const NAMED = /\b(location|top|eval|postMessage|import)\b/;
  const MOST = 2000;
  const known = new Map();
  const rewritten = (text, kind = "") => {
    if (typeof text !== "string" || !isOwn || !Request || text.length > 1e6 || !NAMED.test(text)) return text;
    const found = known.get(kind + text);
    if (found !== undefined || known.size >= MOST) return found === undefined ? text : found;
    let better = text;
    try {
      const request = new Request();
      open.call(request, "POST", origin + "/_nenrin/script" + kind, false);
      send.call(request, text);
      if (request.status === 200) better = request.responseText;
    } catch { better = text; }
    known.set(kind + text, better);
    return better;
  };
  const { construct } = view.Reflect;
  const { toString } = view.Function.prototype;
  const global = view.eval;
  const made = (native, given, as) => {
    const plain = construct(native, given, as);
    if (as !== view.Function || given.length === 0) return plain;
    const text = "(" + toString.call(plain) + ")";
    const better = rewritten(text);
    return better === text ? plain : global(better);
  };
  const Made = new view.Proxy(view.Function, { construct: made, apply: (native, as, given) => made(native, given, Made) });
  view.Object.defineProperty(view.Function.prototype, "constructor", { value: Made, writable: true, configurable: true });
  view.Object.defineProperty(view, "Function", { value: Made, writable: true, configurable: true });
  for (const name of ["setTimeout", "setInterval"]) {
    const native = view[name];
    view[name] = function (act, ...rest) { return native.call(view, rewritten(act), ...rest); };
  }
  return rewritten;
}
