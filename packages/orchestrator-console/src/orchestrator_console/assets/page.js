// @ts-check
/** Behaviour of every page: a notice while the server cannot be reached, and refreshed parts of the page. */

const notice = /** @type {HTMLElement} */ (document.getElementById("notice"));

/** Show a message in the corner of the page; an empty text removes it.
 * @param {string} text */
export function notify(text) {
  if (notice.textContent !== text) notice.textContent = text;
}

/** The message for a failed request.
 * @param {number} status the status of the response, 0 without any
 * @returns {string} */
export function explain(status) {
  if (status === 401) return "The session has ended. Sign in again in another tab; nothing typed here is lost.";
  if (status === 404) return "This no longer exists.";
  if (status === 429) return "Too many requests: the page is refreshed less often.";
  return "The server cannot be reached. What you see is the last known state; it is refreshed automatically.";
}

document.addEventListener("htmx:after:request", (event) => {
  const status = /** @type {any} */ (event).detail?.ctx?.response?.raw?.status ?? 0;
  notify(status >= 400 ? explain(status) : "");
});
document.addEventListener("htmx:error", () => notify(explain(0)));
