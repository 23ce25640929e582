// @ts-check
/** The slider of the history: a change shows that time. */

const form = /** @type {HTMLFormElement} */ (document.getElementById("slider"));
form.addEventListener("change", () => form.requestSubmit());
