// @ts-check
/** Refreshes the live part of a page when the stack has new events, at most once per second. */

import { explain, notify } from "./page.js";

const PAUSE = 1000; // milliseconds between two refreshes
const RETRY = 5000; // milliseconds until a closed stream is opened again

/** Call a function at most once per pause, the last time after the last call.
 * @param {() => void} refresh
 * @param {number} pause
 * @returns {() => void} */
export function merged(refresh, pause) {
  let planned = false;
  let last = 0;
  return () => {
    if (planned) return;
    planned = true;
    setTimeout(() => {
      planned = false;
      last = Date.now();
      refresh();
    }, Math.max(50, last + pause - Date.now()));
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

const live = document.querySelector("[data-stream]");
if (live instanceof HTMLElement && live.dataset.stream && "EventSource" in window) {
  const refresh = () => document.body.dispatchEvent(new CustomEvent("live"));
  follow(live.dataset.stream, merged(refresh, PAUSE));
}
