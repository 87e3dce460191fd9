// The timeline: live bytes stacked by category, the reserved bytes and the limit. Drawn by uPlot from the fullest
// moment of each pixel, so that no peak is missed however many events there are.
import uPlot from 'uplot';
import {bytes, bytes_at, count, time_at} from './format.js';
import {KINDS, UNUSED} from './history.js';

// From the bottom of the chart to its top: the longest-lived first.
export const STACK = [0, 2, 1, 3, 4, 5, 6, 7, UNUSED];

export const limit_text = ({name, own_bytes: own, outside_bytes: outside}) => `${name}: ${bytes(own)}${outside > 0 ? ` + ${bytes(outside)} held outside it` : ''}`;

const GUTTER = () => (window.innerWidth < 560 ? 58 : 72);

export class Timeline {
  constructor(host, history, view, colors) {
    this.host = host;
    this.history = history;
    this.view = view;
    this.colors = colors;
    this.hidden = new Set();
    this.shown = {moments: [], data: []};
    this.on_hover = this.on_select = this.on_zoom = () => {};
    this.#make();
  }

  get left() { return this.plot.bbox.left / devicePixelRatio; }
  get width() { return this.plot.bbox.width / devicePixelRatio; }

  #size() { return {width: Math.max(this.host.clientWidth, 200), height: window.innerWidth < 560 ? 220 : 300}; }

  #make() {
    this.plot?.destroy();
    const {history, view, colors} = this;
    const stepped = uPlot.paths.stepped({align: 1});
    const areas = [...STACK].reverse().map((category) => ({
      label: history.categories[category],
      fill: colors.categories[category],
      stroke: colors.categories[category],
      width: 0,
      paths: stepped,
      points: {show: false},
    }));
    const font = `${window.innerWidth < 560 ? 11 : 12}px system-ui, sans-serif`;
    const axis = {font, stroke: colors.soft, grid: {stroke: colors.grid, width: 1}, ticks: {stroke: colors.grid, width: 1, size: 4}};
    this.plot = new uPlot({
      ...this.#size(),
      padding: [10, 12, 0, 0],
      legend: {show: false},
      scales: {x: {time: false, range: () => [view.from, view.to]}, y: {range: () => [0, this.#top()]}},
      axes: [
        {...axis, values: (_, splits) => splits.map((x) => this.label_of(x, splits[1] - splits[0])), space: 90, size: 34},
        {...axis, values: (_, splits) => splits.map(bytes_at), size: () => GUTTER(), splits: () => this.#splits()},
      ],
      series: [{}, ...areas, {label: 'reserved', stroke: colors.text, width: 1.25, dash: [5, 4], paths: stepped, points: {show: false}}],
      cursor: {
        x: true, y: false, points: {show: false}, drag: {x: true, y: false, setScale: false},
        bind: {dblclick: () => () => this.on_zoom(0, this.view.end())},
      },
      hooks: {
        draw: [(plot) => this.#draw_over(plot)],
        setCursor: [(plot) => this.#hover(plot)],
        setSelect: [(plot) => this.#selected(plot)],
      },
    }, [[0], ...areas.map(() => [0]), [0]], this.host);
    this.plot.over.addEventListener('click', (event) => {
      if (this.dragged) {
        this.dragged = false;
        return;
      }
      const x = this.plot.posToVal(event.offsetX, 'x');
      this.on_select(this.#moment_near(x));
    });
  }

  recolor(colors) {
    this.colors = colors;
    this.#make();
    this.refresh();
  }

  resize() {
    this.plot.setSize(this.#size());
    this.refresh();
  }

  label_of(x, step) {
    return this.view.axis === 'time' ? time_at(x, this.view.to / (this.view.to - this.view.from) > 1000 ? this.view.to : this.view.to - this.view.from, step) : count(Math.round(x));
  }

  // Highest value of the vertical axis. The limit is shown when it is not far above what is used.
  #top() {
    const used = Math.max(this.most ?? 0, 64);
    const {bytes: limit} = this.view.limit;
    return limit > 0 && limit < 2.2 * used ? Math.max(limit * 1.1, used * 1.06) : used * 1.08;
  }

  #splits() {
    const top = this.#top();
    let step = 2 ** Math.floor(Math.log2(top / 4));
    if (top / step > 7) step *= 2;
    const result = [];
    for (let y = 0; y <= top; y += step) result.push(y);
    return result;
  }

  // One point for each pixel that has moments: its fullest.
  refresh() {
    const {history, view} = this;
    const pixels = Math.max(Math.round(this.width || 600), 50);
    const by_time = view.axis === 'time';
    const index = (x) => by_time ? history.moment_at(x) : Math.min(Math.floor(x), history.moments - 1);
    const x_of = (m) => by_time ? history.time[m] : m;
    const xs = [], moments = [], sums = STACK.map(() => []), reserved = [];
    const parts = new Float64Array(KINDS);
    let most = 0, most_held = 0;
    const add = (x, moment) => {
      moment >= 0 ? history.composition(moment, parts) : parts.fill(0);
      let sum = 0;
      STACK.forEach((category, i) => {
        if (!this.hidden.has(category)) sum += parts[category] * history.unit;
        sums[i].push(sum);
      });
      const held = moment >= 0 ? history.reserved_at(moment) * history.unit : 0;
      xs.push(x);
      moments.push(moment);
      reserved.push(held || null);
      most = Math.max(most, sum);
      most_held = Math.max(most_held, held);
    };
    let before = index(view.from);
    add(view.from, before);
    const span = view.to - view.from;
    for (let p = 1; p <= pixels; ++p) {
      const last = index(view.from + span * p / pixels);
      if (last <= before) continue;
      const moment = last - before === 1 ? history.settled[last] : history.fullest(before + 1, last + 1);
      const x = Math.max(x_of(Math.min(moment, last)), xs[xs.length - 1]);
      if (x > xs[xs.length - 1]) add(x, moment);
      before = last;
    }
    if (xs[xs.length - 1] < view.to) add(view.to, index(view.to));
    this.beyond = !this.hidden.size && most_held > 2.5 * Math.max(most, 64) ? most_held : 0;  // Too high to be drawn.
    this.most = this.hidden.size || this.beyond ? most : Math.max(most, most_held);
    this.shown = {xs, moments};
    if (this.hidden.size || this.beyond) reserved.fill(null);
    this.plot.setData([xs, ...[...sums].reverse(), reserved]);
  }

  #moment_near(x) {
    const {xs, moments} = this.shown;
    let low = 0, high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= x) low = middle + 1;
      else high = middle;
    }
    return Math.max(moments[Math.max(low - 1, 0)] ?? 0, 0);
  }

  #hover(plot) {
    const {left} = plot.cursor;
    if (left === undefined || left < 0) this.on_hover(null);
    else this.on_hover({left, moment: this.#moment_near(plot.posToVal(left, 'x'))});
  }

  #selected(plot) {
    const {left, width} = plot.select;
    plot.setSelect({left: 0, width: 0, top: 0, height: 0}, false);
    if (width < 5) return;
    this.dragged = true;
    this.on_zoom(plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x'));
  }

  #draw_over(plot) {
    const {ctx, bbox} = plot;
    const {colors, view} = this;
    const at = (x) => plot.valToPos(x, 'x', true);
    ctx.save();
    ctx.setLineDash([]);
    ctx.textAlign = 'left';
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    if (view.limit.bytes > 0 && view.limit.bytes <= this.#top()) {
      const y = plot.valToPos(view.limit.bytes, 'y', true);
      ctx.strokeStyle = ctx.fillStyle = colors.limit;
      ctx.lineWidth = 2 * devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.font = `600 ${11.5 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textBaseline = 'bottom';
      ctx.fillText(limit_text(view.limit), bbox.left + 8 * devicePixelRatio, y - 3 * devicePixelRatio);
    }
    if (this.beyond) {
      ctx.fillStyle = colors.soft;
      ctx.font = `${11.5 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textBaseline = 'top';
      ctx.textAlign = 'right';
      ctx.fillText(`reserved: up to ${bytes(this.beyond)}, above the chart ↑`, bbox.left + bbox.width - 8 * devicePixelRatio, bbox.top + 4 * devicePixelRatio);
    }
    if (view.selected >= 0) {
      const x = at(this.view.x_of(view.selected));
      ctx.strokeStyle = colors.accent;
      ctx.lineWidth = 1.5 * devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }
}
