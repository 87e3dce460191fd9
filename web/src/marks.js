// Marks over the timeline: steps, phases, rungs of the ladder, refusals, texts; and a list of those that matter.
import {bytes, count, element, time} from './format.js';

const LIST = 60;

export class Marks {
  constructor(history, view, timeline, go_to) {
    Object.assign(this, {history, view, timeline, go_to});
    this.host = document.getElementById('marks');
    this.renew();
  }

  // The list below the charts.
  renew() {
    const {history, go_to} = this;
    const notable = history.marks.filter(({kind}) => kind === 'refused' || kind === 'ladder' || kind === 'text');
    const words = (mark) => mark.kind === 'refused' ? `Refused ${bytes(mark.number)}: ${mark.text}` :
        mark.kind === 'ladder' ? `Pressure: ${mark.text}, ${bytes(mark.number)} freed` : mark.text;
    const shown = notable.length > LIST ? [...notable.filter(({kind}) => kind === 'refused'), ...notable.filter(({kind}) => kind !== 'refused')].slice(0, LIST) : notable;
    const list = document.getElementById('events');
    list.replaceChildren(...shown.map((mark) => element('li', {class: mark.kind},
        element('button', {type: 'button', class: 'link', onclick: () => go_to(Math.max(mark.moment - 1, 0))}, time(mark.time, history.duration)), ` ${words(mark)}`)));
    if (notable.length > shown.length) list.append(element('li', {}, `and ${count(notable.length - shown.length)} more like these`));
    list.hidden = notable.length === 0;
  }

  // As many step numbers as there is room for, also where steps bunch; a flag for each rung and refusal.
  refresh() {
    const {history, view, timeline, host} = this;
    const {left, width} = timeline;
    const place = (mark) => view.axis === 'time' ? mark.time : mark.moment;
    const at = (mark) => left + (place(mark) - view.from) / (view.to - view.from) * width;
    const inside = (marks) => {
      const first = lower(marks, view.from, place), last = lower(marks, view.to, place);
      return marks.slice(first, last + (marks[last] && place(marks[last]) === view.to ? 1 : 0));
    };
    const steps = inside(history.steps), parts = [];
    const every = nice(steps.length / Math.max(width / 64, 1));
    let free = -Infinity, line = -Infinity;  // Where the last number ends, and where the last line is.
    for (const step of steps) {
      if (every !== 1 && step.number % every !== 0) continue;
      const x = at(step), text = free === -Infinity ? `step ${count(step.number)}` : count(step.number);
      const before = x + text_width(text) > left + width + 8;  // At the right end numbers are left of their lines.
      const named = (before ? x - text_width(text) : x) >= free;
      if (!named && x - line < 3) continue;
      parts.push(element('span', {class: `step${before && named ? ' before' : ''}`, style: `left:${x}px`}, named ? text : ''));
      line = x;
      if (named) free = before ? x : x + text_width(text);
    }
    const phases = inside(history.phases);
    if (phases.length < width / 56)
      phases.forEach((phase, i) => {  // Named where the name has room.
        const room = (i + 1 < phases.length ? at(phases[i + 1]) : left + width) - at(phase);
        parts.push(element('span', {class: 'phase', style: `left:${at(phase)}px`}, room > text_width(phase.text) ? phase.text : ''));
      });
    let last = -10;
    for (const mark of inside(history.marks.filter(({kind}) => kind === 'refused' || kind === 'ladder'))) {
      const x = at(mark);
      if (x - last < 4) continue;
      last = x;
      parts.push(element('span', {class: `flag ${mark.kind}`, style: `left:${x}px`}));
    }
    host.classList.toggle('has-phases', phases.length > 0 && phases.length < width / 56);
    host.replaceChildren(...parts);
    host.hidden = history.marks.length === 0;
  }
}

// The most pixels that a short text takes, with some space after it.
const text_width = (text) => 7 * text.length + 8;

function lower(marks, value, place) {
  let low = 0, high = marks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (place(marks[middle]) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The next of 1, 2, 5, 10, 20, ... that is not smaller.
function nice(value) {
  for (let power = 1;; power *= 10)
    for (const digit of [1, 2, 5])
      if (digit * power >= value) return digit * power;
}
