// @ts-check
/** Refreshes the live part of a page when the stack has new events, and when the server expects a newer picture:
 * at most once per pause, not while the page is hidden, and less often if a refresh takes long. */

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
 * `settles` repeats the last refresh once, because the server follows events with a delay.
 * @param {() => Promise<boolean>} refresh returns whether the next one takes as long
 * @param {number} pause
 * @returns {(settles: boolean) => void} */
export function merged(refresh, pause) {
  let wanted = false;
  let repeats = false;
  let repeated = false;
  let running = false;
  async function run() {
    running = true;
    await sleep(MERGE);
    while (wanted || repeated) {
      await visible();
      repeated = repeats;
      wanted = repeats = false;
      const begun = performance.now();
      const took = (await refresh()) ? performance.now() - begun : 0;
      await sleep(Math.max(pause, SHARE * took) - took);
    }
    running = false;
  }
  return (settles) => {
    wanted = true;
    repeats ||= settles;
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

/** Let htmx replace the live part, and wait for it. Only the first complete picture has to wait for its data.
 * @returns {Promise<boolean>} */
async function refresh() {
  const newerIn = document.getElementById("live")?.dataset.newerIn;
  const done = new Promise((resolve) => document.addEventListener("htmx:finally:request", resolve, { once: true }));
  document.body.dispatchEvent(new CustomEvent("live"));
  await Promise.race([done, sleep(LONGEST)]);
  expect();
  return Number(newerIn) !== 0;
}

/** Request a refresh at the time at which the server expects a newer picture, if it does. */
function expect() {
  clearTimeout(expected);
  const seconds = document.getElementById("live")?.dataset.newerIn;
  if (seconds) expected = setTimeout(() => request(false), 1000 * Number(seconds));
}

const live = document.getElementById("live");
const pause = Number(live?.dataset.pause);
const request = merged(refresh, pause || PAUSE);
let expected = 0;
expect();
if (live?.dataset.stream && "EventSource" in window) follow(live.dataset.stream, () => request(pause > 0));
