// Makes time and chance of a window or worker repeatable: the clock starts at a moment and runs from there,
// and random numbers follow from a seed.
(view, start, seed) => {
  const Native = view.Date;
  const shift = start - Native.now();
  const nativeNow = Native.now;
  const now = () => nativeNow() + shift;
  const Steady = new view.Proxy(Native, {
    construct: (target, given, made) => view.Reflect.construct(target, given.length ? given : [now()], made),
    apply: () => new Native(now()).toString(),
  });
  Native.now = now;
  Native.prototype.constructor = Steady;
  view.Object.defineProperty(view, "Date", { value: Steady, writable: true, configurable: true, enumerable: false });
  // Mulberry32.
  let state = seed >>> 0;
  view.Math.random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
