// Reads the columns in the page: base64 of deflated byte planes.
import {breathe} from './format.js';

const AHEAD = 3;  // Elements inflated ahead of the one being read.

function decode(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

async function inflate(text) {
  const stream = new Blob([decode(text)]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Puts the numbers' bytes, plane by plane, together.
function join_planes(bytes, n, planes, into, at) {
  for (let i = 0; i < n; ++i) into[at + i] = bytes[i];
  for (let plane = 1; plane < planes; ++plane) {
    const from = plane * n, weight = 2 ** (8 * plane);
    for (let i = 0; i < n; ++i) into[at + i] += bytes[from + i] * weight;
  }
}

// Of the elements below `root`: {head, columns: {name: Uint32Array}}; on_progress(share).
export async function unpack(root, on_progress) {
  const elements = [...root.querySelectorAll('script[data-column]')];
  if (elements.length === 0) return null;
  const sizes = {};
  for (const {dataset} of elements) sizes[dataset.column] = (sizes[dataset.column] ?? 0) + Number(dataset.count);
  const columns = {}, filled = {};
  let head = null, done = 0;
  const ahead = elements.slice(0, AHEAD).map(({textContent}) => inflate(textContent));
  for (const [i, element] of elements.entries()) {
    if (elements[i + AHEAD]) ahead.push(inflate(elements[i + AHEAD].textContent));
    const {column, count, planes} = element.dataset;
    const bytes = await ahead.shift();
    element.remove();
    if (column === 'head') {
      head = JSON.parse(new TextDecoder().decode(bytes));
    } else {
      const n = Number(count), at = filled[column] ?? 0;
      const into = columns[column] ??= new Uint32Array(sizes[column]);
      join_planes(bytes, n, Number(planes), into, at);
      filled[column] = at + n;
    }
    on_progress(++done / elements.length);
    await breathe();
  }
  return {head, columns};
}
