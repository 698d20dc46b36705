(() => {
  const start = __NOW_MS__, began = performance.now();
  const RealDate = Date;
  const now = () => Math.floor(start + (performance.now() - began) / 1000) ;
  // Time stands almost still: two passes of a page read the same date.
  function FixedDate(...args) {
    if (!new.target) return new RealDate(now()).toString();
    return args.length ? Reflect.construct(RealDate, args, new.target) : Reflect.construct(RealDate, [now()], new.target);
  }
  FixedDate.prototype = RealDate.prototype;
  FixedDate.now = now; FixedDate.parse = RealDate.parse; FixedDate.UTC = RealDate.UTC;
  Object.defineProperty(RealDate.prototype, "constructor", { value: FixedDate, writable: true, configurable: true });
  globalThis.Date = FixedDate;
  let seed = __SEED__ >>> 0;
  const next = () => {
    seed = (seed + 0x6d2b79f5) >>> 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (t ^ (t >>> 14)) >>> 0;
  };
  Math.random = () => next() / 4294967296;
  if (globalThis.crypto) {
    crypto.getRandomValues = (array) => {
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      for (let i = 0; i < bytes.length; i++) bytes[i] = next() & 255;
      return array;
    };
    if (crypto.randomUUID) crypto.randomUUID = () => {
      const hex = [...crypto.getRandomValues(new Uint8Array(16))].map((b, i) =>
        (i === 6 ? (b & 15) | 64 : i === 8 ? (b & 63) | 128 : b).toString(16).padStart(2, "0")).join("");
      return hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
    };
  }
  for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "WebTransport"]) {
    delete globalThis[name];
  }
})();
