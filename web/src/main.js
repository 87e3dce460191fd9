import {AddressMap} from './addressmap.js';
import {colors, watch_theme} from './colors.js';
import {bytes, count, element, time} from './format.js';
import {History} from './history.js';
import {follow} from './live.js';
import {Marks} from './marks.js';
import {Moment} from './moment.js';
import {show_figures, show_findings, show_forecast, show_gaps} from './overview.js';
import {STACK, Timeline, limit_text} from './timeline.js';
import {unpack} from './unpack.js';

const $ = (id) => document.getElementById(id);

class Page {
  constructor(history) {
    this.history = history;
    const {head} = history;
    this.view = {
      axis: 'time', from: 0, to: 1, selected: -1, limit: head.summary.limit,
      end: () => this.view.axis === 'time' ? Math.max(history.duration, 1) : Math.max(history.moments - 1, 1),
      x_of: (moment) => this.view.axis === 'time' ? history.time[moment] : moment,
      moment_of: (x) => this.view.axis === 'time' ? history.moment_at(x) : Math.min(Math.floor(x), history.moments - 1),
    };
    this.view.to = this.view.end();
    this.view.selected = history.moments > 0 ? history.peak : -1;
    this.#introduce();
    const palette = colors();
    this.timeline = new Timeline($('timeline'), history, this.view, palette);
    this.map = new AddressMap($('map'), history, this.view, this.timeline, palette);
    this.moment = new Moment(history, this.view, palette);
    this.marks = new Marks(history, this.view, this.timeline, (moment) => this.go_to(moment));
    this.timeline.on_zoom = (from, to) => this.zoom(from, to);
    this.timeline.on_select = (moment) => this.select(moment);
    this.timeline.on_hover = (hover) => this.#tip(hover);
    this.map.on_select = (moment) => this.select(moment);
    this.map.on_hover = (hover) => this.#tip(hover, true);
    this.moment.on_point = (block) => this.map.redraw(block);
    this.#make_legend();
    this.#bind_buttons();
    this.#bind_keys();
    new ResizeObserver(() => this.#resized()).observe($('charts'));
    this.refresh();
    this.moment.refresh();
  }

  // The run has gone on. What was chosen and shown stays; a view of the whole run stays one.
  async update(fresh) {
    const {history, view} = this;
    const whole = view.from <= 0 && view.to >= view.end();
    const was_peak = view.selected === history.peak, was_last = view.selected === history.moments - 1;
    const [time, from, to] = [view.selected, view.moment_of(view.from), view.moment_of(view.to)].map((moment) => history.time[Math.max(moment, 0)] ?? 0);
    const chosen = history.chosen;
    if (chosen >= 0) await fresh.choose(chosen);
    Object.assign(history, fresh);
    view.limit = history.head.summary.limit;
    view.selected = history.moments === 0 ? -1 : was_last ? history.moments - 1 : was_peak ? history.peak : Math.max(history.moment_at(time), 0);
    view.from = whole ? 0 : view.x_of(Math.max(history.moment_at(from), 0));
    view.to = whole ? view.end() : view.x_of(Math.max(history.moment_at(to), 0));
    $('go-back').hidden = $('go-on').hidden = history.steps.length === 0;
    this.#introduce();
    this.#make_legend();
    this.marks.renew();
    this.moment.renew();
    this.refresh();
  }

  #introduce() {
    const {head} = this.history;
    const {summary} = head;
    $('title').textContent = head.title;
    document.title = `${head.title}: memory report`;
    const when = summary.start_unix_ns > 0 ? new Date(summary.start_unix_ns / 1e6).toISOString().slice(0, 16).replace('T', ' ') : '';
    $('about').textContent = [when && `${when} UTC`, time(summary.duration_ns), `process ${summary.process}`, summary.devices.map(({name}) => name).join(', ')].filter(Boolean).join(' · ');
    show_figures(head);
    show_findings(head, (moment) => this.go_to(moment));
    show_forecast(head, colors());
    show_gaps(head);
  }

  #make_legend() {
    const {history} = this;
    const used = new Set(history.category);
    const items = STACK.filter((category) => used.has(category)).map((category) => element('li', {},
        element('button', {type: 'button', class: 'legend-item', 'aria-pressed': String(!this.timeline.hidden.has(category)), 'data-category': category, title: 'Show or hide', onclick: (event) => {
          const {hidden} = this.timeline;
          hidden.has(category) ? hidden.delete(category) : hidden.add(category);
          event.currentTarget.setAttribute('aria-pressed', String(!hidden.has(category)));
          this.timeline.refresh();
        }}, element('span', {class: 'swatch', style: `--fill:${colors().categories[category]}`}), history.categories[category])));
    items.push(element('li', {class: 'legend-line'}, element('span', {class: 'dash'}), 'reserved'));
    if (this.view.limit.bytes > 0) items.push(element('li', {class: 'legend-line'}, element('span', {class: 'line'}), limit_text(this.view.limit)));
    items.push(element('li', {class: 'legend-line'}, element('span', {class: 'swatch hole'}), 'hole'));
    $('legend').replaceChildren(...items);
  }

  #bind_buttons() {
    const {history} = this;
    for (const button of document.querySelectorAll('[data-axis]'))
      button.addEventListener('click', () => this.set_axis(button.dataset.axis));
    $('zoom-in').addEventListener('click', () => this.zoom_by(0.5));
    $('zoom-out').addEventListener('click', () => this.zoom_by(2));
    $('zoom-all').addEventListener('click', () => this.zoom(0, this.view.end()));
    $('go-peak').addEventListener('click', () => this.go_to(history.peak));
    $('go-end').addEventListener('click', () => this.go_to(history.moments - 1));
    $('go-back').addEventListener('click', () => this.by_step(-1));
    $('go-on').addEventListener('click', () => this.by_step(1));
    if (history.steps.length === 0) $('go-back').hidden = $('go-on').hidden = true;
    const devices = history.head.summary.devices;
    if (devices.length > 1) {
      $('device-choice').hidden = false;
      $('device').replaceChildren(element('option', {value: -1}, 'all'), ...devices.map(({name}, i) => element('option', {value: i}, name)));
      $('device').addEventListener('change', async (event) => {
        await history.choose(Number(event.target.value));
        this.view.selected = history.peak;
        this.refresh();
        this.moment.refresh();
      });
    }
    watch_theme((palette) => {
      this.timeline.recolor(palette);
      this.map.recolor(palette);
      this.moment.refresh(palette);
      show_forecast(history.head, palette);
      this.#make_legend();
      this.refresh();
    });
  }

  #bind_keys() {
    $('charts').addEventListener('keydown', (event) => {
      const pixel = (this.view.to - this.view.from) / Math.max(this.timeline.width, 1);
      const actions = {
        ArrowLeft: () => event.shiftKey ? this.by_step(-1) : this.move(-4 * pixel),
        ArrowRight: () => event.shiftKey ? this.by_step(1) : this.move(4 * pixel),
        '+': () => this.zoom_by(0.5), '=': () => this.zoom_by(0.5), '-': () => this.zoom_by(2), '0': () => this.zoom(0, this.view.end()),
        Home: () => this.go_to(0), End: () => this.go_to(this.history.moments - 1), p: () => this.go_to(this.history.peak), P: () => this.go_to(this.history.peak),
      };
      if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      actions[event.key]();
    });
  }

  set_axis(axis) {
    const {view} = this;
    if (axis === view.axis) return;
    const ends = [view.moment_of(view.from), view.moment_of(view.to)].map((moment) => Math.max(moment, 0));
    const all = view.from <= 0 && view.to >= view.end();
    view.axis = axis;
    for (const button of document.querySelectorAll('[data-axis]')) button.setAttribute('aria-pressed', String(button.dataset.axis === axis));
    if (all) this.zoom(0, view.end());
    else this.zoom(view.x_of(ends[0]), view.x_of(ends[1]));
  }

  zoom(from, to) {
    const {view} = this;
    const least = view.axis === 'time' ? Math.min(200, view.end()) : Math.min(4, view.end());
    if (to - from < least) {
      const middle = (from + to) / 2;
      from = middle - least / 2;
      to = middle + least / 2;
    }
    view.from = Math.max(0, from);
    view.to = Math.min(view.end(), Math.max(to, view.from + least));
    if (view.to - view.from < least) view.from = Math.max(0, view.to - least);
    this.refresh();
  }

  // Around the chosen moment when it is in sight, else around the middle.
  zoom_by(factor) {
    const {view} = this;
    const x = view.selected >= 0 ? view.x_of(view.selected) : -1;
    const middle = x >= view.from && x <= view.to ? x : (view.from + view.to) / 2;
    this.zoom(middle - (middle - view.from) * factor, middle + (view.to - middle) * factor);
  }

  move(distance) {
    const {view, history} = this;
    const now = view.selected;
    let next = Math.max(view.moment_of(view.x_of(now) + distance), 0);
    if (history.settled[next] === history.settled[now]) {  // One further, skipping everything that happened at the same time.
      next = now + Math.sign(distance);
      while (next > 0 && distance < 0 && history.settled[next] === now) --next;
    }
    this.go_to(Math.min(Math.max(next, 0), history.moments - 1));
  }

  // To the fullest moment of the step before or after.
  by_step(direction) {
    const {history, view} = this;
    const index = Math.min(Math.max(history.step_index(view.selected) + direction, 0), history.steps.length - 1);
    const from = history.steps[index].moment, to = history.steps[index + 1]?.moment ?? history.moments;
    if (from < to) this.go_to(history.fullest(from, to));
  }

  go_to(moment) {
    const {view} = this;
    const x = view.x_of(moment), span = view.to - view.from;
    if (x < view.from || x > view.to) {
      view.from = Math.min(Math.max(0, x - span / 2), view.end() - span);
      view.to = view.from + span;
      this.refresh();
    }
    this.select(moment);
  }

  select(moment) {
    this.view.selected = this.history.settled[moment] ?? moment;
    this.timeline.plot.redraw(false);
    this.map.redraw();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.moment.refresh(), 30);
  }

  refresh() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => {
      this.timeline.refresh();
      this.#follow();
    });
  }

  // What is below and above the timeline, once that has its size.
  #follow() {
    clearTimeout(this.following);
    this.following = setTimeout(() => {
      this.marks.refresh();
      this.map.refresh();
    }, 0);
  }

  #resized() {
    const width = $('charts').clientWidth;
    if (width === this.last_width) return;
    this.last_width = width;
    this.timeline.resize();
    this.#follow();
    this.moment.refresh();
  }

  // What is under the pointer, by name.
  #tip(hover, on_map = false) {
    const tip = $('tip');
    if (!hover || this.history.moments === 0) {
      tip.hidden = true;
      if (on_map) this.map.redraw();
      return;
    }
    const {history} = this;
    const {moment} = hover;
    const step = history.step_of(moment), phase = history.phase_of(moment);
    const lines = [element('p', {class: 'tip-title'}, [time(history.time[moment], history.duration), step && `step ${count(step.number)}`, phase?.text].filter(Boolean).join(' · '))];
    const row = (category, name, size) => element('p', {class: 'tip-row'}, element('span', {class: 'swatch', style: `--fill:${colors().categories[category]}`}), element('span', {class: 'tip-name'}, name), element('span', {class: 'tip-size'}, size));
    const name_of = (known) => [known.name || known.op, known.shape, known.scope && `in ${known.scope}`].filter(Boolean).join(' ');
    if (on_map) {
      if (hover.block >= 0) {
        const known = history.describe(hover.block);
        lines.push(row(known.category_index, name_of(known), bytes(known.bytes)), element('p', {class: 'tip-note'}, `${known.category}${known.name ? `, made by ${known.op}` : ''}, at offset ${bytes(history.address_of(history.offset[hover.block]))}`));
      } else {
        lines.push(element('p', {class: 'tip-note'}, hover.address === null ? 'addresses never used' : `free, at offset ${bytes(hover.address)}`));
      }
      this.map.redraw(hover.block);
    } else {
      const unused = history.unused[moment] * history.unit;
      lines.push(element('p', {class: 'tip-total'}, `${bytes(history.total[moment] * history.unit)} in use${unused > 0 ? ` (${bytes(unused)} unused in plan)` : ''}, ${bytes(history.reserved_at(moment) * history.unit)} reserved`));
      for (const b of history.largest(moment, 6)) {
        const known = history.describe(b);
        lines.push(row(known.category_index, name_of(known), bytes(known.bytes)));
      }
    }
    tip.replaceChildren(...lines);
    tip.hidden = false;
    const host = $('charts'), x = this.timeline.left + hover.left;
    const flip = x > host.clientWidth / 2;
    tip.style.left = flip ? '' : `${x + 14}px`;
    tip.style.right = flip ? `${host.clientWidth - x + 14}px` : '';
    tip.style.top = on_map ? `${$('map').offsetTop - 20}px` : `${$('timeline').offsetTop + 14}px`;
  }
}

let page = null;

// The first history makes the page, later ones of the same run replace what it shows.
function show(history) {
  if (page) return page.update(history);
  $('report').hidden = false;
  $('loading').remove();
  window.report = page = new Page(history);  // For tests and debugging.
  document.documentElement.dataset.ready = 'yes';
}

async function start() {
  document.documentElement.dataset.theme = window.matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  const loading = $('loading');
  try {
    if ($('live-source')) return await follow(loading, show);
    const data = await unpack(document, (share) => loading.textContent = `Unpacking the trace… ${Math.round(70 * share)} %`);
    if (!data) {
      loading.textContent = 'This page has no trace in it.';
      return;
    }
    show(await History.make(data, (share) => loading.textContent = `Unpacking the trace… ${Math.round(70 + 30 * share)} %`));
  } catch (error) {
    loading.textContent = `This report cannot be shown: ${error.message}`;
    throw error;
  }
}

start();
