// @ts-check
/** Forms with a template: dropped files, and jumps to the place of a fault. */

import { notify } from "./page.js";

const LARGEST = 15 * 1024 * 1024; // bytes; the server accepts forms of 16 MiB

/** Put a dropped file into a text field.
 * @param {HTMLTextAreaElement} field
 * @param {File} file */
async function take(field, file) {
  if (file.size > LARGEST) {
    notify(`${file.name} has ${Math.round(file.size / 1048576)} MiB, more than a form may have. `
      + "Use the command line: orchestrator stack create -t FILE NAME");
    return;
  }
  field.value = await file.text();
  notify(`${file.name} is in the form.`);
}

/** Select a line of a text field.
 * @param {HTMLTextAreaElement} field
 * @param {number} line
 * @param {number} column */
function select(field, line, column) {
  const lines = field.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  field.focus();
  field.setSelectionRange(start + column - 1, start + (lines[line - 1] ?? "").length);
  const height = parseFloat(getComputedStyle(field).lineHeight) || 18;
  field.scrollTop = Math.max(0, (line - 4) * height);
}

for (const field of document.querySelectorAll("textarea[data-drop]")) {
  if (!(field instanceof HTMLTextAreaElement)) continue;
  field.addEventListener("dragover", (event) => event.preventDefault());
  field.addEventListener("drop", (event) => {
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    take(field, file);
  });
}
for (const name of ["dragover", "drop"]) {
  addEventListener(name, (event) => { // a file that misses the field would replace the page
    if (event instanceof DragEvent && event.dataTransfer?.types.includes("Files")) event.preventDefault();
  });
}
for (const link of document.querySelectorAll("a[data-line]")) {
  link.addEventListener("click", (event) => {
    const field = document.getElementById("template");
    if (!(field instanceof HTMLTextAreaElement) || !(link instanceof HTMLElement)) return;
    event.preventDefault();
    select(field, Number(link.dataset.line), Number(link.dataset.column));
  });
}
const changed = document.querySelector("form[enctype] textarea");
if (changed) {
  let typed = false;
  changed.addEventListener("input", () => { typed = true; });
  document.querySelector("form[enctype]")?.addEventListener("submit", (event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    const size = [...form.querySelectorAll("input[type=file]")].reduce(
      (sum, input) => sum + ((/** @type {HTMLInputElement} */ (input)).files?.[0]?.size ?? 0), 0);
    if (size > LARGEST) {
      event.preventDefault();
      notify("The file is too large for a form. Use the command line: orchestrator stack create -t FILE NAME");
      return;
    }
    typed = false;
  });
  addEventListener("beforeunload", (event) => { if (typed) event.preventDefault(); });
}
