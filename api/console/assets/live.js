// @ts-check
/** Refreshes the live part of a page when the stack has new events: at most once per pause, not while the page
 * is hidden, and less often if a refresh takes long. */

import { explain, notify } from "./page.js";

const PAUSE = 1000; // milliseconds between two refreshes, unless the page has another one
const SHARE = 20; // a refresh takes at most this part of the time
const MERGE = 50; // milliseconds in which first events are merged
const LONGEST = 30_000; // milliseconds after which a refresh counts as ended
const RETRY = 5000; // milliseconds until a closed stream is opened again

/** @param {number} milliseconds @returns {Promise<void>} */
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** @returns {Promise<void>} when the page is visible */
async function visible() {
  while (document.hidden) {
    await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
  }
}

/** Return a function that requests a refresh. Requests during a refresh or the pause after it cause one refresh.
 * @param {() => Promise<void>} refresh
 * @param {number} pause
 * @param {boolean} settles the last refresh is repeated once: the server follows the events with a delay
 * @returns {() => void} */
export function merged(refresh, pause, settles) {
  let wanted = false;
  let repeated = false;
  let running = false;
  async function run() {
    running = true;
    await sleep(MERGE);
    while (wanted || repeated) {
      await visible();
      repeated = wanted && settles;
      wanted = false;
      const begun = performance.now();
      await refresh();
      const took = performance.now() - begun;
      await sleep(Math.max(pause, SHARE * took) - took);
    }
    running = false;
  }
  return () => {
    wanted = true;
    if (!running) void run();
  };
}

/** Follow the events at an address.
 * @param {string} address
 * @param {() => void} changed */
export function follow(address, changed) {
  const source = new EventSource(address);
  source.onmessage = changed;
  source.addEventListener("caught-up", changed);
  source.onerror = () => {
    if (source.readyState !== EventSource.CLOSED) return; // the browser connects again, from the last event
    notify(explain(0));
    setTimeout(() => {
      changed(); // also reports an ended session
      follow(address, changed);
    }, RETRY);
  };
  addEventListener("pagehide", () => source.close(), { once: true });
}

/** Let htmx replace the live part, and wait for it. */
async function refresh() {
  const done = new Promise((resolve) => document.addEventListener("htmx:finally:request", resolve, { once: true }));
  document.body.dispatchEvent(new CustomEvent("live"));
  await Promise.race([done, sleep(LONGEST)]);
}

const live = document.querySelector("[data-stream]");
if (live instanceof HTMLElement && live.dataset.stream && "EventSource" in window) {
  const pause = Number(live.dataset.pause);
  follow(live.dataset.stream, merged(refresh, pause || PAUSE, pause > 0));
}
