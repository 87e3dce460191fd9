// Reads the columns that the page carries: base64 of deflated byte planes.
import {breathe} from './format.js';

function decode(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

async function inflate(text) {
  const stream = new Blob([decode(text)]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// {head, columns: {name: Uint32Array}}; on_progress(share).
export async function unpack(on_progress) {
  const elements = [...document.querySelectorAll('script[data-column]')];
  if (elements.length === 0) return null;
  const sizes = {};
  for (const {dataset} of elements) sizes[dataset.column] = (sizes[dataset.column] ?? 0) + Number(dataset.count);
  const columns = {}, filled = {};
  let head = null, done = 0;
  for (const element of elements) {
    const {column, count} = element.dataset;
    const bytes = await inflate(element.textContent);
    element.remove();
    if (column === 'head') {
      head = JSON.parse(new TextDecoder().decode(bytes));
    } else {
      const n = Number(count), at = filled[column] ?? 0;
      const into = columns[column] ??= new Uint32Array(sizes[column]);
      for (let i = 0; i < n; ++i)
        into[at + i] = (bytes[i] | bytes[n + i] << 8 | bytes[2 * n + i] << 16 | bytes[3 * n + i] << 24) >>> 0;
      filled[column] = at + n;
    }
    on_progress(++done / elements.length);
    await breathe();
  }
  return {head, columns};
}
