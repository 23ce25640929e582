// @ts-check
/** Data of a field: the bytes, their changes, and the names of a range. */

/** @typedef {{stack_status: string, order: string, cursor: string, count: number, counts: Record<string, number>, levels: number[], levels_count: number, changed?: number, draft?: boolean}} Header */
/** @typedef {{resource_name: string, resource_type: string, resource_status: string, stack_name: string, url: string}} Named */

const BLOCK = 128; // names per request
const MAX_BLOCKS = 200;

/** Read a response: the header, and the bytes after it.
 * @param {ArrayBuffer} buffer
 * @returns {{header: Header, rest: Uint8Array}} */
export function parse(buffer) {
  const length = new DataView(buffer).getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  return { header, rest: new Uint8Array(buffer, 8 + length) };
}

/** The positions and the bytes of changes.
 * @param {Header} header @param {Uint8Array} rest
 * @returns {{positions: Uint32Array, bytes: Uint8Array}} */
export function changesOf(header, rest) {
  const count = header.changed ?? 0;
  const positions = new Uint32Array(rest.slice(0, 4 * count).buffer);
  return { positions, bytes: rest.subarray(4 * count) };
}

/** A request for data that failed. */
export class RequestFailed extends Error {
  /** @param {number} status 0 without a response */
  constructor(status) {
    super(`status ${status}`);
    this.status = status;
  }
}

/** @param {string} url @returns {Promise<Response>} */
export async function request(url) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin" });
  } catch {
    throw new RequestFailed(0);
  }
  if (!response.ok) throw new RequestFailed(response.status);
  return response;
}

/** Names of resources, read in blocks on demand. */
export class Names {
  /** @param {string} url */
  constructor(url) {
    this.url = url;
    /** @type {Map<number, Promise<(Named | null)[]>>} */
    this.blocks = new Map();
  }

  /** Forget all names, because the order is another. */
  clear() {
    this.blocks.clear();
  }

  /** Return the name of a resource.
   * @param {number} position @param {number} count of the field
   * @returns {Promise<Named | null>} */
  async of(position, count) {
    const start = position - (position % BLOCK);
    let block = this.blocks.get(start);
    if (!block) {
      if (this.blocks.size >= MAX_BLOCKS) this.blocks.clear();
      const wanted = Math.min(BLOCK, count - start);
      block = request(`${this.url}/names?start=${start}&count=${wanted}`)
        .then((response) => response.json())
        .then((body) => body.resources);
      block.catch(() => this.blocks.delete(start));
      this.blocks.set(start, block);
    }
    return (await block)[position - start] ?? null;
  }
}
