// @ts-check
/** Layout of a field: where each resource is drawn. Pure. */

/** @typedef {{cell: number, columns: number, shared: number, rows: number, bands: {first: number, count: number, row: number}[], gap: number}} Layout
 * `cell` is the side of a square in device pixels, `shared` the number of resources that share one. */

const LARGEST = 56;

/** Return the layout of `count` resources on `width` × `height` device pixels.
 * @param {number} count
 * @param {number[]} levels resources per level; empty: without bands
 * @param {number} width
 * @param {number} height
 * @returns {Layout} */
export function layOut(count, levels, width, height) {
  const bands = levels.length ? levels : [count];
  for (let cell = Math.min(LARGEST, width, height); cell >= 1; cell = cell > 12 ? cell - 4 : cell - 1) {
    const gap = cell >= 4 ? Math.max(4, cell >> 1) : 2;
    const columns = Math.max(1, Math.floor(width / cell));
    const found = placed(bands, columns, cell, gap, 1);
    if (found.height <= height) return found.layout;
  }
  for (let shared = Math.max(1, Math.floor(count / (width * height))); ; shared++) {
    const found = placed([count], width, 1, 0, shared);
    if (found.height <= height) return found.layout;
  }
}

/** @param {number[]} bands @param {number} columns @param {number} cell @param {number} gap @param {number} shared */
function placed(bands, columns, cell, gap, shared) {
  let first = 0;
  let row = 0;
  const result = [];
  for (const count of bands) {
    result.push({ first, count, row });
    first += count;
    row += Math.ceil(count / shared / columns);
  }
  const layout = { cell, columns, shared, rows: row, bands: result, gap };
  return { layout, height: row * cell + gap * (bands.length - 1) };
}

/** Return the place of a resource, in device pixels.
 * @param {Layout} layout @param {number} position
 * @returns {{x: number, y: number}} */
export function placeOf(layout, position) {
  const nth = bandOf(layout, position);
  const band = layout.bands[nth];
  const at = Math.floor((position - band.first) / layout.shared);
  const row = band.row + Math.floor(at / layout.columns);
  return { x: (at % layout.columns) * layout.cell, y: row * layout.cell + nth * layout.gap };
}

/** Return the band of a resource.
 * @param {Layout} layout @param {number} position
 * @returns {number} */
export function bandOf(layout, position) {
  let low = 0;
  let high = layout.bands.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (layout.bands[middle].first <= position) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Return the resource at a place in device pixels, -1 if there is none.
 * @param {Layout} layout @param {number} x @param {number} y
 * @returns {number} */
export function positionAt(layout, x, y) {
  const column = Math.floor(x / layout.cell);
  if (column < 0 || column >= layout.columns) return -1;
  for (let nth = layout.bands.length - 1; nth >= 0; nth--) {
    const band = layout.bands[nth];
    const top = band.row * layout.cell + nth * layout.gap;
    if (y < top) continue;
    const at = Math.floor((y - top) / layout.cell) * layout.columns + column;
    const position = band.first + at * layout.shared;
    return position < band.first + band.count ? position : -1;
  }
  return -1;
}
