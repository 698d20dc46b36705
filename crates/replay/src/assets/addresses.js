// Addresses of the archive and of the archived servers, turned into each other. `page` says what is shown:
// its date (`at`), the origin of replay (`home`), and its server, where that has an origin of its own.
(page, native, baseURI) => {
  const URL = globalThis.URL;
  const isOwn = page.server !== undefined;
  const [homeScheme, homeHost] = (page.home || "").split("://");
  const below = "." + homeHost;
  const OWN_PATH = /^\/(web|_nenrin)\//;
  const IN_PATH = /^\/web\/\d{14}[a-z_]*\/(https?:\/\/[^]*)$/;
  const LABEL = /^https?:\/\/\d{14}m?(s?)(?:p(\d+))?-([a-z0-9-]+)\./;

  // The archived address of what is shown now.
  function here() {
    if (isOwn && /^https?:/.test(native.protocol)) return new URL(page.server + native.pathname + native.search + native.hash);
    const found = IN_PATH.exec(native.pathname + native.search);
    return new URL(found ? found[1] + native.hash : native.href);
  }
  // The origin of an archived server, or a path of ours that leads there.
  function shelf(url) {
    const name = url.hostname;
    const label = page.at + (page.bare ? "m" : "") + (url.protocol === "https:" ? "s" : "") +
      (url.port ? "p" + url.port : "") + "-" + name.replace(/-/g, "--").replace(/\./g, "-");
    const isPlain = label.length <= 63 && /^[a-z0-9-]+$/.test(label) && !/\.-|^-|[-.]$/.test(name);
    if (!isPlain) return "/_nenrin/to/" + url.href;
    return homeScheme + "://" + label + below + url.pathname + url.search + url.hash;
  }
  // Where a reference leads inside the archive; what is no URL of the web, or leads there already, stays.
  function into(reference, kind) {
    let url;
    try {
      const text = String(reference).trimStart();
      const scheme = isOwn && /^[\\/][\\/]/.test(text) ? page.server.split("//")[0] : "";
      url = new URL(scheme + text, baseURI());
    } catch { return reference; }
    if (url.protocol !== "http:" && url.protocol !== "https:") return reference;
    if (isOwn) return url.host.endsWith(below) || url.host === homeHost ? reference : shelf(url);
    const as = "/web/" + page.at + (kind === undefined ? page.mod || "" : kind) + "/";
    if (url.host !== page.host) return as + url.href;
    if (OWN_PATH.test(url.pathname)) return reference;
    return as + here().origin + url.pathname + url.search + url.hash;
  }
  // Whether a reference might lead out of the archive.
  function leaves(text) {
    const first = text.trimStart().replace(/[\t\n\r]/g, "");
    if (/^[\\/](?![\\/])/.test(first)) return !isOwn && !OWN_PATH.test(first);
    return /^(https?:)?[\\/]{2}/i.test(first) || /^https?:/i.test(first);
  }
  // The archived address that one of ours stands for.
  function out(text) {
    if (typeof text !== "string") return text;
    if (!isOwn) {
      const found = text.startsWith(page.origin + "/web/") && IN_PATH.exec(text.slice(page.origin.length));
      return found ? found[1] : text;
    }
    const at = text.indexOf(below);
    if (at < 0) return text;
    const after = text.slice(at + below.length);
    const found = LABEL.exec(text);
    if (!found || (after && !/^[/?#]/.test(after)) || found[0].length !== at + 1) return text;
    if (text.slice(0, at + below.length) === page.origin) return page.server + after;
    const name = found[3].replace(/--/g, "\0").replace(/-/g, ".").replace(/\0/g, "-");
    return (found[1] ? "https://" : "http://") + name + (found[2] ? ":" + found[2] : "") + after;
  }
  // What stands for `location`: the archived address, and navigation inside the archive.
  function place(prototype) {
    const go = (url) => { native.href = into(url); };
    const made = Object.create(prototype);
    const part = (name, set) => Object.defineProperty(made, name, {
      enumerable: true, configurable: true, get: () => here()[name], set });
    const whole = (name) => part(name, (value) => { const url = here(); url[name] = value; go(url.href); });
    const own = (name) => part(name, (value) => { native[name] = value; });
    part("href", go);
    part("origin");
    ["protocol", "host", "hostname", "port"].forEach(whole);
    ["pathname", "search", "hash"].forEach(isOwn ? own : whole);
    const fixed = (name, value) => Object.defineProperty(made, name, { enumerable: true, configurable: true, value });
    fixed("assign", go);
    fixed("replace", (url) => native.replace(into(url)));
    fixed("reload", () => native.reload());
    fixed("toString", () => here().href);
    if (native.ancestorOrigins) fixed("ancestorOrigins", native.ancestorOrigins);
    return { made, go };
  }
  return { isOwn, here, into, leaves, out, place };
}
