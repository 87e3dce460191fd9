// The map of addresses: time to the right, addresses upwards, each block at its address. Holes below the highest block
// are shaded. Painted in slices, so that the page stays responsive while a million events are drawn.
import {bytes_at} from './format.js';
import {NEVER} from './history.js';

const SLICE_MS = 12, BLOCKS_PER_LOOK = 4096;

function packed(color) {
  const value = parseInt(color.slice(1), 16);
  return (0xff000000 | (value & 255) << 16 | (value >> 8 & 255) << 8 | value >> 16) >>> 0;
}

export class AddressMap {
  constructor(canvas, history, view, timeline, colors) {
    Object.assign(this, {canvas, history, view, timeline, colors});
    this.run = this.painted = 0;  // The last painting that began, and the last that is finished.
    this.picture = document.createElement('canvas');
    this.on_hover = () => {};
    this.on_select = () => {};
    canvas.addEventListener('mousemove', (event) => this.#hover(event));
    canvas.addEventListener('mouseleave', () => this.on_hover(null));
    canvas.addEventListener('click', (event) => {
      const found = this.#find(event);
      if (found) this.on_select(found.moment);
    });
  }

  recolor(colors) {
    this.colors = colors;
    this.refresh();
  }

  // Starts painting from scratch; abandons unfinished painting.
  refresh() {
    const run = ++this.run;
    const scale = Math.min(devicePixelRatio, 2);
    const width = Math.max(Math.round(this.timeline.width * scale), 50);
    const height = Math.round((window.innerWidth < 560 ? 140 : 190) * scale);
    const paint = this.#begin(width, height);
    const slice = () => {
      if (run !== this.run) return;
      const start = performance.now();
      while (paint.next < this.history.blocks && !paint.done && performance.now() - start < SLICE_MS) this.#paint_some(paint);
      if (paint.next < this.history.blocks && !paint.done) {
        setTimeout(slice, 0);
        return;
      }
      this.#finish(paint);
      this.painted = run;
    };
    slice();
  }

  #begin(width, height) {
    const {history, view} = this;
    const by_time = view.axis === 'time';
    return {
      width, height, next: 0, done: false,
      pixels: new Uint32Array(width * height),
      highest: new Float64Array(width),
      fills: this.colors.categories.map(packed),
      hole: packed(this.colors.hole),
      per_x: width / (view.to - view.from),
      per_unit: height / Math.max(history.highest - history.lowest, 1),
      lowest: history.lowest,
      x_of: by_time ? (m) => history.time[m] : (m) => m,
    };
  }

  #paint_some(paint) {
    const {history, view} = this;
    const {width, height, pixels, highest, fills, per_x, per_unit, lowest, x_of} = paint;
    const {born, died, size, offset, label, category, arena, chosen} = history;
    const end = Math.min(paint.next + BLOCKS_PER_LOOK, history.blocks);
    for (let b = paint.next; b < end; ++b) {
      if (chosen >= 0 && arena[b] !== chosen) continue;
      const from = x_of(born[b]);
      if (from > view.to) {
        paint.done = true;
        break;
      }
      const to = died[b] === NEVER ? Infinity : x_of(died[b]);
      if (to < view.from) continue;
      const x0 = Math.max(Math.floor((from - view.from) * per_x), 0);
      const x1 = Math.min(Math.max(Math.ceil((to - view.from) * per_x), x0 + 1), width);
      const top = offset[b] - lowest + size[b];
      const y1 = height - Math.floor((offset[b] - lowest) * per_unit);
      const y0 = Math.min(Math.round(height - top * per_unit), y1 - 1);
      const fill = fills[category[label[b]]];
      for (let y = Math.max(y0, 0); y < y1; ++y) pixels.fill(fill, y * width + x0, y * width + x1);
      for (let x = x0; x < x1; ++x)
        if (top > highest[x]) highest[x] = top;
    }
    paint.next = end;
  }

  #finish(paint) {
    const {width, height, pixels, highest, hole, per_unit} = paint;
    // Holes: what is free below the highest block of each column. Strips for omitted addresses are not holes.
    const rows = new Uint8Array(height);
    for (const {at, size} of this.history.stretches) {
      const bottom = height - (at - this.history.lowest) * per_unit, top = bottom - size * per_unit;
      rows.fill(1, Math.max(Math.round(top), 0), Math.max(Math.round(bottom), 0));
    }
    for (let x = 0; x < width; ++x)
      for (let y = Math.max(Math.round(height - highest[x] * per_unit), 0); y < height; ++y)
        if (pixels[y * width + x] === 0 && rows[y]) pixels[y * width + x] = hole;
    this.picture.width = width;
    this.picture.height = height;
    this.picture.getContext('2d').putImageData(new ImageData(new Uint8ClampedArray(pixels.buffer), width, height), 0, 0);
    this.redraw();
  }

  // The map with its overlays: axis, chosen moment, a highlighted block.
  redraw(pointed = -1) {
    const {canvas, picture, timeline, view, history, colors} = this;
    if (picture.width < 2) return;
    const scale = Math.min(devicePixelRatio, 2);
    const left = timeline.left, width = timeline.width, height = picture.height / scale;
    canvas.width = Math.round(timeline.host.clientWidth * scale);
    canvas.height = Math.round((height + 8) * scale);
    canvas.style.height = `${height + 8}px`;
    const draw = canvas.getContext('2d');
    draw.scale(scale, scale);
    draw.translate(0, 4);
    draw.drawImage(picture, left, 0, width, height);
    draw.font = `${window.innerWidth < 560 ? 11 : 12}px system-ui, sans-serif`;
    draw.textAlign = 'right';
    draw.textBaseline = 'middle';
    draw.lineWidth = 1;
    const total = (history.highest - history.lowest) * history.unit;
    let step = 2 ** Math.floor(Math.log2(Math.max(total, 64) / 3));
    if (total / step > 6) step *= 2;
    for (let y = 0; y <= total; y += step) {
      const at = Math.round(height - y / total * height) + 0.5;
      draw.fillStyle = colors.soft;
      draw.fillText(bytes_at(y), left - 8, Math.min(Math.max(at, 6), height - 5));
      draw.strokeStyle = colors.grid;
      draw.beginPath();
      draw.moveTo(left - 4, at);
      draw.lineTo(left, at);
      draw.stroke();
    }
    draw.setLineDash([3, 3]);
    draw.strokeStyle = colors.soft;
    for (let i = 1; i < history.stretches.length; ++i) {  // Where unused addresses are omitted.
      const before = history.stretches[i - 1];
      const middle = (before.at + before.size + history.stretches[i].at) / 2 - history.lowest;
      const at = height - middle / (history.highest - history.lowest) * height;
      draw.beginPath();
      draw.moveTo(left, at);
      draw.lineTo(left + width, at);
      draw.stroke();
    }
    draw.setLineDash([]);
    draw.strokeStyle = colors.grid;
    draw.strokeRect(left + 0.5, 0.5, width - 1, height - 1);
    const x_at = (x) => left + (x - view.from) / (view.to - view.from) * width;
    if (view.selected >= 0) {
      const x = x_at(view.x_of(view.selected));
      if (x >= left && x <= left + width) {
        draw.strokeStyle = colors.accent;
        draw.lineWidth = 1.5;
        draw.beginPath();
        draw.moveTo(x, 0);
        draw.lineTo(x, height);
        draw.stroke();
      }
    }
    if (pointed >= 0) {
      const per = height / Math.max(history.highest - history.lowest, 1);
      const x0 = Math.max(x_at(view.x_of(history.born[pointed])), left);
      const x1 = history.died[pointed] === NEVER ? left + width : Math.min(x_at(view.x_of(history.died[pointed])), left + width);
      const y0 = height - (history.offset[pointed] - history.lowest + history.size[pointed]) * per;
      draw.strokeStyle = colors.text;
      draw.lineWidth = 2;
      draw.strokeRect(x0, y0, Math.max(x1 - x0, 2), Math.max(history.size[pointed] * per, 2));
    }
  }

  #find(event) {
    const {timeline, view, history} = this;
    const x = event.offsetX - timeline.left, height = this.canvas.clientHeight - 8, y = event.offsetY - 4;
    if (x < 0 || x > timeline.width || y < 0 || y > height) return null;
    const at = view.from + x / timeline.width * (view.to - view.from);
    const moment = Math.max(view.moment_of(at), 0);
    const address = history.lowest + (height - y) / height * (history.highest - history.lowest);
    const {born, died, offset, size, chosen, arena, blocks} = history;
    let block = -1;
    for (let b = 0; b < blocks && born[b] <= moment; ++b)
      if (died[b] > moment && offset[b] <= address && offset[b] + size[b] > address && (chosen < 0 || arena[b] === chosen)) block = b;
    return {left: x, moment, block, address: history.address_of(address)};
  }

  #hover(event) {
    if (this.waits) return;
    this.waits = true;
    requestAnimationFrame(() => {
      this.waits = false;
      this.on_hover(this.#find(event));
    });
  }
}
