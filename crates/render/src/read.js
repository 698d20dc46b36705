(() => {
  const links = [], seen = new Set();
  const add = (url, frame) => {
    if (!url || typeof url !== "string" || !/^https?:/i.test(url) || seen.has(url)) return;
    seen.add(url);
    if (links.length < 20000) links.push({ url, frame });
  };
  for (const a of document.querySelectorAll("a[href], area[href]")) add(a.href, false);
  for (const frame of document.querySelectorAll("iframe[src], frame[src]")) add(frame.src, true);
  return {
    url: location.href,
    title: document.title,
    text: ((document.body && document.body.innerText) || "").slice(0, 4000000),
    links,
  };
})()
