(async () => {
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const root = document.scrollingElement || document.documentElement;
  if (!root) return 0;
  const step = Math.max(200, innerHeight * 0.8);
  let steps = 0;
  for (let at = 0; at < root.scrollHeight && steps < 60; at += step, steps++) {
    scrollTo(0, at);
    await pause(60);
  }
  scrollTo(0, root.scrollHeight);
  await pause(150);
  scrollTo(0, 0);
  return steps;
})()
