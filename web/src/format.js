// Numbers as people read them.
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function bytes(value, digits = 1) {
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${unit === 0 ? value : value.toFixed(digits)} ${UNITS[unit]}`;
}

// The same without needless digits, for axes.
export const bytes_at = (value) => bytes(value, 2).replace(/\.0+ |(\.\d*[1-9])0+ /, '$1 ');

export const count = (value) => value.toLocaleString('en-US');

// Nanoseconds, in a unit that suits `span`.
export function time(ns, span = ns) {
  const digits = (unit) => Math.max(0, Math.min(3, 3 - Math.floor(Math.log10(Math.max(span / unit, 1e-9)))));
  if (span >= 1e9) return `${(ns / 1e9).toFixed(digits(1e9))} s`;
  if (span >= 1e6) return `${(ns / 1e6).toFixed(digits(1e6))} ms`;
  if (span >= 1e3) return `${(ns / 1e3).toFixed(digits(1e3))} µs`;
  return `${Math.round(ns)} ns`;
}

// A place on an axis of times whose marks are `step` apart.
export function time_at(ns, span, step) {
  const [unit, name] = span >= 1e9 ? [1e9, 's'] : span >= 1e6 ? [1e6, 'ms'] : span >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
  let digits = 0;  // As many as distinguish the marks.
  while (step > 0 && digits < 9 && Math.abs(step / unit * 10 ** digits - Math.round(step / unit * 10 ** digits)) > 1e-6) ++digits;
  return `${(ns / unit).toFixed(digits)} ${name}`;
}

export const percent = (part, whole) => whole > 0 ? `${(100 * part / whole).toFixed(part / whole < 0.1 ? 1 : 0)} %` : '–';

// An element: element('p', {class: 'hint'}, 'text', child, ...).
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, '');
    else if (value !== false && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// Lets the browser do pending work: unpacking and painting happen in pieces.
export function breathe() {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve();
    };
    channel.port2.postMessage(0);
  });
}
