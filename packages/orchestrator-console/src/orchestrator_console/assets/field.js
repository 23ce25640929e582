// @ts-check
/** The field: a square per resource, kept current, with names on hover and a selection by keys. */

import { changesOf, Names, parse, request, RequestFailed } from "./field_data.js";
import { bandOf, layOut, placeOf, positionAt } from "./field_layout.js";
import { DRIFT, Painter, STATES } from "./field_paint.js";
import { explain, notify } from "./page.js";

// With the 250 ms between two reads of events, a change is shown within a second.
const REFRESH_MILLISECONDS = 500;
const QUIET_MILLISECONDS = 600;
const FAILED_MILLISECONDS = 4_000;

/** @template {HTMLElement} T @param {string} id @returns {T} */
const element = (id) => /** @type {T} */ (document.getElementById(id));

const place = element("field");
const url = place.dataset.url ?? "";
const at = place.dataset.at; // a past time
const plane = element("field-plane");
/** @type {HTMLCanvasElement} */
const canvas = element("field-canvas");
const tip = element("field-tip");
const pointer = element("field-pointer");
const announced = element("field-selected");
const painter = new Painter(canvas);
const names = new Names(url);
const english = new Intl.NumberFormat("en");
const grouped = { format: (/** @type {number} */ value) => english.format(value).replaceAll(",", "\u202f") };

/** @type {Uint8Array} */
let states = new Uint8Array(0);
/** @type {import("./field_data.js").Header | null} */
let header = null;
let status = place.dataset.status; // of the stack, as the head of the page shows it
let layout = layOut(0, [], 1, 1);
let selected = -1;
let hovered = -1;

/** Draw everything for the present size of the plane. */
async function draw() {
  const scale = window.devicePixelRatio || 1;
  const width = Math.max(1, Math.round(canvas.clientWidth * scale));
  const height = Math.max(1, Math.round(canvas.clientHeight * scale));
  canvas.width = width;
  canvas.height = height;
  layout = layOut(states.length, header?.levels ?? [], width, height);
  painter.reset();
  const text = layout.shared > 1 ? `A pixel shows the worst of ${layout.shared} resources.` : "";
  element("field-scale").textContent = header?.draft ? "The levels follow in a few seconds." : text;
  mark();
  if (!(await painter.all(layout, states))) return;
  performance.mark("field-drawn");
  if (!header?.draft) performance.mark("field-complete");
}

/** Show the numbers of the legend. */
function count() {
  if (!header) return;
  element("field-count").textContent = grouped.format(header.count);
  element("field-levels").textContent = grouped.format(header.levels_count);
  element("field-noun").textContent = header.count === 1 ? "resource" : "resources";
  element("field-levels-noun").textContent = header.levels_count === 1 ? "level" : "levels";
  element("field-in-levels").hidden = Boolean(header.draft);
  for (const item of element("field-legend").children) {
    const line = /** @type {HTMLElement} */ (item);
    const number = header.counts[line.dataset.state ?? ""] ?? 0;
    line.classList.toggle("none", !number);
    const amount = line.querySelector(".amount");
    if (amount) amount.textContent = grouped.format(number);
  }
}

/** Take a response: the whole field, or changes.
 * @param {ArrayBuffer} buffer
 * @returns {Promise<boolean>} whether it is a first picture */
async function take(buffer) {
  const { header: next, rest } = parse(buffer);
  const reordered = next.order !== header?.order;
  header = next;
  count();
  if (status !== next.stack_status) {
    status = next.stack_status;
    document.body.dispatchEvent(new CustomEvent("live"));
  }
  if (next.changed === undefined) {
    states = rest;
    if (reordered) {
      names.clear();
      selected = hovered = -1;
    }
    await draw();
    return Boolean(next.draft);
  }
  const { positions, bytes } = changesOf(next, rest);
  positions.forEach((position, nth) => {
    states[position] = bytes[nth];
  });
  painter.some(layout, states, positions);
  if (positions.includes(selected)) void announce();
  return false;
}

/** Request changes for as long as the page is visible. */
async function follow() {
  let pause = REFRESH_MILLISECONDS;
  if (!document.hidden && header) {
    try {
      const query = new URLSearchParams({ order: header.order, cursor: header.cursor });
      await take(await (await request(`${url}/changes?${query}`)).arrayBuffer());
      notify("");
      pause = header.counts.in_progress ? REFRESH_MILLISECONDS : QUIET_MILLISECONDS;
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error;
      notify(explain(error.status));
      pause = FAILED_MILLISECONDS;
    }
  }
  setTimeout(follow, pause);
}

/** Return the resource below a pointer.
 * @param {MouseEvent} event @returns {number} */
function below(event) {
  const box = canvas.getBoundingClientRect();
  const scale = canvas.width / box.width;
  return positionAt(layout, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
}

/** Show the frame around the selected resource. */
function mark() {
  pointer.hidden = selected < 0;
  if (selected < 0) return;
  const scale = canvas.clientWidth / canvas.width;
  const { x, y } = placeOf(layout, selected);
  const side = Math.max(7, layout.cell * scale + 3);
  const middle = (layout.cell * scale) / 2;
  pointer.style.width = pointer.style.height = `${side}px`;
  pointer.style.left = `${canvas.offsetLeft + x * scale + middle - side / 2}px`;
  pointer.style.top = `${canvas.offsetTop + y * scale + middle - side / 2}px`;
}

/** The state of a resource in words.
 * @param {number} position @returns {string} */
function inWords(position) {
  const state = STATES[states[position] & 15].replace("_", " ");
  return states[position] & DRIFT ? `${state}, drift` : state;
}

/** The name of a resource, null if it was deleted or is not known yet.
 * @param {number} position @returns {Promise<import("./field_data.js").Named | null>} */
async function nameOf(position) {
  return header && !header.draft ? names.of(position, header.count).catch(() => null) : null;
}

/** Say which resource is selected. */
async function announce() {
  const position = selected;
  if (position < 0 || !header) return;
  const found = await nameOf(position);
  if (position !== selected) return;
  announced.replaceChildren();
  if (header.draft) {
    announced.textContent = `${inWords(position)}; the names follow in a few seconds.`;
    return;
  }
  if (!found) {
    announced.textContent = "The resource was deleted.";
    return;
  }
  const link = document.createElement("a");
  link.href = found.url;
  link.textContent = found.resource_name;
  const where = `${grouped.format(position + 1)} of ${grouped.format(header.count)}`;
  announced.append(link, ` ${found.resource_type}, ${inWords(position)}, in ${found.stack_name}; ${where}`);
}

/** @param {number} position */
function select(position) {
  selected = Math.max(0, Math.min(states.length - 1, position));
  mark();
  void announce();
}

/** The next failed resource after the selected one, or that itself.
 * @returns {number} */
function nextFailed() {
  const failed = STATES.indexOf("failed");
  for (let step = 1; step <= states.length; step++) {
    const position = (selected + step) % states.length;
    if ((states[position] & 15) === failed) return position;
  }
  return selected;
}

/** The first resource of a neighbouring level.
 * @param {number} step @returns {number} */
function level(step) {
  const nth = bandOf(layout, Math.max(0, selected)) + step;
  const band = layout.bands[Math.max(0, Math.min(layout.bands.length - 1, nth))];
  return band.first;
}

async function openSelected() {
  if (selected < 0 || !header) return;
  const found = await nameOf(selected);
  if (found) location.assign(found.url);
}

/** @type {Record<string, () => void>} */
const KEYS = {
  ArrowRight: () => select(selected + layout.shared),
  ArrowLeft: () => select(selected - layout.shared),
  ArrowDown: () => select(selected < 0 ? 0 : selected + layout.columns * layout.shared),
  ArrowUp: () => select(selected - layout.columns * layout.shared),
  PageDown: () => select(level(1)),
  PageUp: () => select(level(-1)),
  Home: () => select(0),
  End: () => select(states.length - 1),
  f: () => select(nextFailed()),
  Enter: () => void openSelected(),
};

canvas.addEventListener("keydown", (event) => {
  const action = KEYS[event.key];
  if (!action || event.ctrlKey || event.altKey || event.metaKey || !states.length) return;
  event.preventDefault();
  action();
});
canvas.addEventListener("click", (event) => {
  const position = below(event);
  if (position >= 0) select(position);
});
canvas.addEventListener("dblclick", () => void openSelected());
canvas.addEventListener("mouseleave", () => {
  hovered = -1;
  tip.hidden = true;
});
canvas.addEventListener("mousemove", async (event) => {
  const position = below(event);
  hovered = position;
  if (position < 0 || !header) {
    tip.hidden = true;
    return;
  }
  const found = await nameOf(position);
  if (hovered !== position || !found) return;
  tip.textContent = `${found.resource_name} · ${inWords(position)} · ${found.resource_type} · ${found.stack_name}`;
  tip.hidden = false;
  const box = plane.getBoundingClientRect();
  const left = event.clientX - box.left + 14;
  const top = event.clientY - box.top + 14;
  tip.style.left = `${Math.max(0, Math.min(left, box.width - tip.offsetWidth - 4))}px`;
  tip.style.top = `${top + tip.offsetHeight > box.height ? top - tip.offsetHeight - 28 : top}px`;
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => void draw());

plane.hidden = false;
element("field-keys").hidden = false;
let size = "";
new ResizeObserver(() => {
  const now = `${canvas.clientWidth}×${canvas.clientHeight}`;
  if (now !== size && header) void draw();
  size = now;
}).observe(plane);

try {
  const query = new URLSearchParams(at ? { at, draft: "true" } : { draft: "true" });
  const isDraft = await take(await (await request(`${url}/data?${query}`)).arrayBuffer());
  query.delete("draft");
  if (isDraft) await take(await (await request(`${url}/data?${query}`)).arrayBuffer());
} catch (error) {
  if (!(error instanceof RequestFailed)) throw error;
  notify(explain(error.status));
}
if (!at) setTimeout(follow, REFRESH_MILLISECONDS);
