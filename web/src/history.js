// The run's history in arrays, and quick queries: how much of what was live when, and where the fullest moments are.
//
// A moment is an allocation or a free, numbered in order. Totals are kept for every moment, categories at every 256th,
// and the fullest moment of every 16, 256, 4096, ... so that any window is summarized without a full scan.
import {breathe} from './format.js';

export const NEVER = 0xffffffff;
export const UNUSED = 8;  // The category of unused parts of a plan's block; follows those of blocks.
export const KINDS = 9;
const STRIDE = 256, FAN = 16, CHUNK = 100000;

export class History {
  static async make({head, columns}, on_progress) {
    const history = new History(head, columns);
    await history.#undo_differences();
    await history.choose(-1, on_progress);
    return history;
  }

  constructor(head, columns) {
    const none = new Uint32Array(0);
    this.head = head;
    this.unit = head.unit;
    this.categories = [...head.categories, 'unused in plan'];
    this.born = columns.born ?? none;
    this.life = columns.life ?? none;
    this.size = columns.size ?? none;
    this.slack = columns.slack ?? none;
    this.offset = columns.offset ?? none;
    this.label = columns.label ?? none;
    this.arena = columns.arena ?? new Uint32Array(this.born.length);
    this.thread = columns.thread ?? null;
    this.ticks = columns.times ?? none;
    this.commits = {moment: columns.commit_moment ?? none, arena: columns.commit_arena ?? none, size: columns.commit_bytes ?? none};
    this.mark_columns = ['kind', 'moment', 'time', 'number', 'text'].map((name) => columns[`mark_${name}`] ?? none);
    this.moments = this.ticks.length;
    this.blocks = this.born.length;
  }

  async #undo_differences() {
    const tick = this.head.tick_ns;
    this.time = new Float64Array(this.moments);
    let sum = 0;
    for (let i = 0; i < this.moments; ++i) this.time[i] = (sum += this.ticks[i]) * tick;
    await breathe();
    this.owner = new Uint32Array(this.moments);
    this.died = new Uint32Array(this.blocks);
    let moment = 0;
    for (let b = 0; b < this.blocks; ++b) {
      moment += this.born[b];
      this.born[b] = moment;
      this.owner[moment] = b;
      this.died[b] = this.life[b] === 0 ? NEVER : moment + this.life[b];
      if (this.life[b] !== 0) this.owner[this.died[b]] = b;
    }
    await breathe();
    this.category = Uint8Array.from(this.head.labels, (label) => label[8] ? UNUSED : label[5]);
    this.settled = new Uint32Array(this.moments);  // The last of those at the same time: steps of plans change much at once.
    for (let m = this.moments - 1; m >= 0; --m) this.settled[m] = m + 1 < this.moments && this.time[m + 1] === this.time[m] ? this.settled[m + 1] : m;
    await breathe();
    const [kind, at, time, number, text] = this.mark_columns;
    this.marks = [];
    for (let i = 0, sum = 0; i < kind.length; ++i) {
      sum += time[i];
      this.marks.push({kind: ['step', 'phase', 'text', 'refused', 'ladder'][kind[i]], moment: at[i], time: sum * tick, number: number[i], text: this.head.texts[text[i]]});
    }
    this.steps = this.marks.filter((mark) => mark.kind === 'step');
    this.phases = this.marks.filter((mark) => mark.kind === 'phase');
    this.duration = Math.max(this.head.summary.duration_ns, 1);
  }

  // Counts one arena, or all (-1).
  async choose(arena, on_progress = () => {}) {
    this.chosen = arena;
    const n = this.moments;
    this.total = new Float64Array(n);
    this.unused = new Uint32Array(n);
    this.checkpoints = new Float64Array((Math.floor(n / STRIDE) + 1) * KINDS);
    const now = new Float64Array(KINDS);
    let sum = 0;
    for (let m = 0; m < n; ++m) {
      if (m % STRIDE === 0) this.checkpoints.set(now, m / STRIDE * KINDS);  // Before the moment.
      const b = this.owner[m];
      if (arena < 0 || this.arena[b] === arena) {
        const change = this.born[b] === m ? this.size[b] : -this.size[b];
        sum += change;
        now[this.category[this.label[b]]] += change;
      }
      this.total[m] = sum;
      this.unused[m] = now[UNUSED];
      if (m % CHUNK === CHUNK - 1) {
        on_progress(m / n);
        await breathe();
      }
    }
    await this.#build_pyramid();
    this.#sum_commits(arena);
    this.peak = n > 0 ? this.fullest(0, n) : 0;
    this.stretches = this.head.stretches.filter(([of]) => arena < 0 || of === arena)
        .map(([of, from, size, at]) => ({arena: of, from, size, at}));
    const last = this.stretches[this.stretches.length - 1];
    this.lowest = this.stretches[0]?.at ?? 0;  // The lowest place in the map, in units.
    this.highest = last ? last.at + last.size : 1;
  }

  async #build_pyramid() {
    this.levels = [];
    let below = null, length = this.moments;
    while (length > FAN) {
      const level = new Uint32Array(Math.ceil(length / FAN));
      for (let i = 0; i < level.length; ++i) {
        const end = Math.min((i + 1) * FAN, length);
        let best = below ? below[i * FAN] : i * FAN;
        for (let j = i * FAN + 1; j < end; ++j) {
          const other = below ? below[j] : j;
          if (this.is_fuller(other, best)) best = other;
        }
        level[i] = best;
      }
      this.levels.push(level);
      below = level;
      length = level.length;
      await breathe();
    }
  }

  // Reserved bytes after each change of them.
  #sum_commits(arena) {
    const {moment, arena: of, size} = this.commits;
    const last = new Map();
    const at = [], units = [];
    let sum = 0;
    for (let i = 0; i < moment.length; ++i) {
      if (arena >= 0 && of[i] !== arena) continue;
      sum += size[i] - (last.get(of[i]) ?? 0);
      last.set(of[i], size[i]);
      at.push(moment[i]);
      units.push(sum);
    }
    this.reserved = {at, units};
  }

  // Among moments with the same bytes, the fuller one has more of them in use by values.
  is_fuller(a, b) {
    return this.total[a] > this.total[b] || (this.total[a] === this.total[b] && this.unused[a] < this.unused[b]);
  }

  // The fullest moment of [from, to); the first of equals.
  fullest(from, to) {
    let best = from;
    const see = (m) => {
      if (this.is_fuller(m, best) || (m < best && !this.is_fuller(best, m))) best = m;
    };
    let a = from, b = to, level = -1;  // At level -1 indices are moments.
    const value = (i) => level < 0 ? i : this.levels[level][i];
    for (;;) {
      if (level + 1 >= this.levels.length || b - a <= FAN) {
        for (let i = a; i < b; ++i) see(value(i));
        return best;
      }
      while (a % FAN !== 0 && a < b) see(value(a++));
      while (b % FAN !== 0 && a < b) see(value(--b));
      if (a >= b) return best;
      a /= FAN;
      b /= FAN;
      ++level;
    }
  }

  // Units live after `moment`, by category, into `out`.
  composition(moment, out) {
    const from = Math.floor(moment / STRIDE);
    for (let i = 0; i < KINDS; ++i) out[i] = this.checkpoints[from * KINDS + i];
    for (let m = from * STRIDE; m <= moment; ++m) {
      const b = this.owner[m];
      if (this.chosen >= 0 && this.arena[b] !== this.chosen) continue;
      out[this.category[this.label[b]]] += this.born[b] === m ? this.size[b] : -this.size[b];
    }
    return out;
  }

  // The last moment at or before a time; -1 before all.
  moment_at(time) {
    let low = 0, high = this.moments;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.time[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  reserved_at(moment) {
    const {at, units} = this.reserved;
    let low = 0, high = at.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (at[middle] <= moment) low = middle + 1;
      else high = middle;
    }
    return low > 0 ? units[low - 1] : 0;
  }

  #last_of(marks, moment) {
    let low = 0, high = marks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (marks[middle].moment <= moment) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
  step_index(moment) { return this.#last_of(this.steps, moment); }
  step_of(moment) { return this.steps[this.step_index(moment)]; }
  phase_of(moment) { return this.phases[this.#last_of(this.phases, moment)]; }

  is_live(b, moment) {
    return this.born[b] <= moment && this.died[b] > moment && (this.chosen < 0 || this.arena[b] === this.chosen);
  }

  live(moment) {
    const result = [];
    const {born, died, chosen, arena, blocks} = this;
    for (let b = 0; b < blocks && born[b] <= moment; ++b)
      if (died[b] > moment && (chosen < 0 || arena[b] === chosen)) result.push(b);
    return result;
  }

  // The largest `n` live at a moment, largest first, without unused parts of plans.
  largest(moment, n) {
    const {born, died, chosen, arena, size, blocks, category, label} = this;
    const best = [];
    for (let b = 0; b < blocks && born[b] <= moment; ++b) {
      if (died[b] <= moment || (chosen >= 0 && arena[b] !== chosen)) continue;
      if ((best.length === n && size[b] <= size[best[n - 1]]) || category[label[b]] === UNUSED) continue;
      let i = best.length < n ? best.push(b) - 1 : n - 1;
      for (; i > 0 && size[best[i - 1]] < size[b]; --i) best[i] = best[i - 1];
      best[i] = b;
    }
    return best;
  }

  // The address, in bytes of its arena's range, of a place in the map; null between stretches.
  address_of(place) {
    const found = this.stretches.find(({at, size}) => place >= at && place < at + size);
    return found ? (found.from + place - found.at) * this.unit : null;
  }

  // What is known of a block.
  describe(b) {
    const [op, scope, name, budget, site, , shape, dtype] = this.head.labels[this.label[b]];
    const names = this.head.names;
    return {op: names[op], scope: names[scope], name: names[name], budget: names[budget], site: names[site], category: this.categories[this.category[this.label[b]]], category_index: this.category[this.label[b]], shape, dtype, bytes: this.size[b] * this.unit, requested: this.size[b] * this.unit - this.slack[b]};
  }
}
