// @ts-check
/** Painting of a field: a tile per state, copied into images in slices, so that no task is long. */

import { placeOf } from "./field_layout.js";

export const STATES = ["planned", "in_progress", "complete", "failed", "deleting", "deleted", "suspended"];
export const DRIFT = 0x80;
const SLICE_MILLISECONDS = 12;
const RANKS = [1, 4, 0, 6, 2, 0, 3]; // a shared pixel shows the state with the highest rank

/** The byte shown for resources that share a pixel.
 * @param {Uint8Array} states @param {number} from @param {number} to @returns {number} */
export function worst(states, from, to) {
  let found = states[from];
  let rank = -1;
  for (let position = from; position < to; position++) {
    const state = states[position];
    const its = RANKS[state & 15] * 2 + (state & DRIFT ? 3 : 0);
    if (its > rank) {
      rank = its;
      found = state;
    }
  }
  return found;
}

/** The colours of the theme, as numbers of an image. They are written as #rrggbb.
 * @returns {Map<string, number>} */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const result = new Map();
  for (const name of [...STATES, "drift", "ground"]) {
    const rgb = parseInt(style.getPropertyValue(`--field-${name}`).trim().slice(1), 16);
    result.set(name, (255 << 24) | ((rgb & 255) << 16) | (rgb & 0xff00) | (rgb >> 16));
  }
  return result;
}

/** Whether a pixel of a tile has the colour of the state; the shapes are those of the legend.
 * @param {string} state @param {number} x @param {number} y @param {number} side @returns {boolean} */
function isFilled(state, x, y, side) {
  const edge = Math.max(1, Math.round(side / 8));
  if (state === "planned") return x < edge || y < edge || x >= side - edge || y >= side - edge;
  if (state === "in_progress") return y < side / 2 || (x + y) % 2 === 0;
  if (state === "failed") return Math.abs(x - y) > edge / 2 && Math.abs(side - 1 - x - y) > edge / 2;
  if (state === "deleting") return Math.floor(y / edge) % 2 === 0;
  if (state === "deleted") return Math.hypot(x - side / 2 + 0.5, y - side / 2 + 0.5) < side / 5;
  if (state === "suspended") return Math.abs(x - side / 2 + 0.5) > side / 8;
  return true;
}

/** Return the tile of a byte.
 * @param {number} byte @param {number} cell @param {Map<string, number>} palette @returns {Uint32Array} */
function tile(byte, cell, palette) {
  const state = STATES[Math.min(byte & 15, STATES.length - 1)];
  const drift = (byte & DRIFT) !== 0;
  const ground = palette.get("ground") ?? 0;
  const own = palette.get(cell < 3 && drift ? "drift" : state) ?? 0;
  const side = cell >= 3 ? cell - (cell >= 12 ? 2 : 1) : cell;
  const result = new Uint32Array(cell * cell).fill(ground);
  for (let y = 0; y < side; y++) {
    for (let x = 0; x < side; x++) {
      const corner = drift && x + y >= side;
      const filled = side < 6 || isFilled(state, x, y, side);
      result[y * cell + x] = corner ? (palette.get("drift") ?? 0) : filled ? own : ground;
    }
  }
  return result;
}

/** Draws a field on a canvas. */
export class Painter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
    this.palette = colours();
    /** @type {(Uint32Array | undefined)[]} */
    this.tiles = [];
    this.run = 0;
  }

  /** Forget the tiles, because the theme or the size of a square has changed. */
  reset() {
    this.palette = colours();
    this.tiles = [];
  }

  /** @param {number} byte @param {number} cell @returns {Uint32Array} */
  tileOf(byte, cell) {
    return (this.tiles[byte] ??= tile(byte, cell, this.palette));
  }

  /** Draw all resources, row by row; a later call ends an earlier one.
   * @param {import("./field_layout.js").Layout} layout @param {Uint8Array} states
   * @returns {Promise<boolean>} whether the field was completed */
  async all(layout, states) {
    const run = ++this.run;
    const { width, height } = this.canvas;
    const css = this.palette.get("ground") ?? 0;
    this.context.fillStyle = `rgb(${css & 255} ${(css >> 8) & 255} ${(css >> 16) & 255})`;
    this.context.fillRect(0, 0, width, height);
    let begun = performance.now();
    for (let nth = 0; nth < layout.bands.length; nth++) {
      const band = layout.bands[nth];
      const rows = Math.ceil(band.count / layout.shared / layout.columns);
      const atOnce = Math.max(1, Math.floor(200_000 / (layout.columns * layout.cell * layout.cell)));
      for (let row = 0; row < rows; row += atOnce) {
        this.rows(layout, states, nth, row, Math.min(rows, row + atOnce));
        if (performance.now() - begun > SLICE_MILLISECONDS) {
          await new Promise((resolve) => setTimeout(resolve));
          if (run !== this.run) return false;
          begun = performance.now();
        }
      }
    }
    return true;
  }

  /** Draw rows of a band.
   * @param {import("./field_layout.js").Layout} layout @param {Uint8Array} states
   * @param {number} nth @param {number} from @param {number} to */
  rows(layout, states, nth, from, to) {
    const { cell, columns, shared } = layout;
    const band = layout.bands[nth];
    const width = columns * cell;
    const image = this.context.createImageData(width, (to - from) * cell);
    const pixels = new Uint32Array(image.data.buffer).fill(this.palette.get("ground") ?? 0);
    const last = band.first + band.count;
    for (let row = from; row < to; row++) {
      for (let column = 0; column < columns; column++) {
        const position = band.first + (row * columns + column) * shared;
        if (position >= last) break;
        const byte = shared > 1 ? worst(states, position, Math.min(last, position + shared)) : states[position];
        const shape = this.tileOf(byte, cell);
        if (cell === 1) {
          pixels[(row - from) * width + column] = shape[0];
          continue;
        }
        const start = (row - from) * cell * width + column * cell;
        for (let y = 0; y < cell; y++) {
          for (let x = 0; x < cell; x++) pixels[start + y * width + x] = shape[y * cell + x];
        }
      }
    }
    this.context.putImageData(image, 0, (band.row + from) * cell + nth * layout.gap);
  }

  /** Draw single resources again.
   * @param {import("./field_layout.js").Layout} layout @param {Uint8Array} states @param {Iterable<number>} positions */
  some(layout, states, positions) {
    const { cell, shared } = layout;
    const image = this.context.createImageData(cell, cell);
    const pixels = new Uint32Array(image.data.buffer);
    for (const position of positions) {
      const from = position - (position % shared);
      const byte = shared > 1 ? worst(states, from, Math.min(states.length, from + shared)) : states[position];
      pixels.set(this.tileOf(byte, cell));
      const { x, y } = placeOf(layout, position);
      this.context.putImageData(image, x, y);
    }
  }
}
