// What is live at the chosen moment: by scope as an icicle, and as a table that can be sorted and searched.
import {bytes, count, element, percent, time} from './format.js';

const ROWS = 20, MORE = 100;

const COLUMNS = [
  {key: 'name', title: 'Name', text: (d) => d.name || '–'},
  {key: 'op', title: 'Operation', text: (d) => d.op},
  {key: 'scope', title: 'Scope', text: (d) => d.scope || '–', class: 'wide'},
  {key: 'category', title: 'Category', text: (d) => d.category},
  {key: 'shape', title: 'Shape', text: (d) => d.shape ? `${d.shape} ${d.dtype}` : '–', class: 'wide'},
  {key: 'bytes', title: 'Size', number: true},
  {key: 'age', title: 'Age', number: true},
  {key: 'site', title: 'Site', text: (d) => d.site || '–', class: 'wide'},
];

export class Moment {
  constructor(history, view, colors) {
    Object.assign(this, {history, view, colors});
    this.sort = {key: 'bytes', down: true};
    this.rows = ROWS;
    this.path = [];
    this.on_point = () => {};
    this.search = document.getElementById('search');
    this.search.addEventListener('input', () => {
      this.rows = ROWS;
      this.#fill_table();
    });
    document.getElementById('more').addEventListener('click', () => {
      this.rows += MORE;
      this.#fill_table();
    });
    this.#make_head();
  }

  #make_head() {
    const head = document.getElementById('table-head');
    const said = {name: 2, scope: 1, site: 4};  // Columns that a trace may leave empty, and their place in labels.
    this.columns = COLUMNS.filter(({key}) => !(key in said) || this.history.head.labels.some((label) => label[said[key]] !== 0));
    head.replaceChildren(...this.columns.map((column) => {
      const button = element('button', {type: 'button'}, column.title);
      button.addEventListener('click', () => {
        const same = this.sort.key === column.key;
        this.sort = {key: column.key, down: same ? !this.sort.down : Boolean(column.number)};
        this.rows = ROWS;
        this.#fill_table();
      });
      return element('th', {scope: 'col', class: `${column.number ? 'number' : ''} ${column.class ?? ''}`, 'data-key': column.key}, button);
    }));
  }

  // The same moment of a run that has gone on.
  renew() {
    this.#make_head();
    const rows = this.rows;
    this.refresh();
    if (rows === this.rows) return;
    this.rows = rows;
    this.#fill_table();
  }

  refresh(colors = this.colors) {
    this.colors = colors;
    const {history, view} = this;
    const moment = view.selected;
    this.live = moment >= 0 ? history.live(moment) : [];
    const total = moment >= 0 ? history.total[moment] * history.unit : 0;
    const step = history.step_of(moment), phase = history.phase_of(moment);
    const reserved = history.reserved_at(moment) * history.unit;
    const about = document.getElementById('moment-about');
    about.textContent = moment < 0 ? 'Nothing was allocated.' :
        `${bytes(total)} in ${count(this.live.length)} tensors and buffers at ${time(history.time[moment], history.duration)}` +
        `${step ? `, step ${count(step.number)}` : ''}${phase ? `, ${phase.text}` : ''}${reserved ? `; ${bytes(reserved)} reserved` : ''}` +
        `${moment === history.peak ? ' (the peak)' : ''}`;
    about.dataset.bytes = total;
    about.dataset.blocks = this.live.length;
    about.dataset.moment = moment;
    this.rows = ROWS;
    this.#build_tree();
    this.#draw_icicle();
    this.#fill_table();
  }

  // Scopes are split at '/', operations are leaves.
  #build_tree() {
    const {history} = this;
    const by_label = new Map();
    for (const b of this.live) {
      const known = by_label.get(history.label[b]);
      if (known) {
        known.units += history.size[b];
        ++known.blocks;
      } else {
        by_label.set(history.label[b], {units: history.size[b], blocks: 1});
      }
    }
    const node = (name, category = -1) => ({name, category, units: 0, blocks: 0, children: new Map()});
    const root = node('everything');
    for (const [label, {units, blocks}] of by_label) {
      const category = history.category[label];
      const [steps, leaf] = this.#place_of(label);
      let at = root;
      const add = (child) => {
        at.units += units;
        at.blocks += blocks;
        if (child === null) return;
        if (!at.children.has(child)) at.children.set(child, node(child));
        at = at.children.get(child);
      };
      for (const step of steps) add(step);
      add(leaf);
      at.category = category;
      add(null);
    }
    this.tree = root;
    while (this.path.length && !this.#node_at(this.path)) this.path.pop();
  }

  // Scopes around a label, and what it is called there. A name without a scope contains its own path.
  #place_of(label) {
    const {names, labels} = this.history.head;
    const [op, scope, name] = labels[label].map((value, i) => i < 3 ? names[value] : value);
    const parts = name.split('/');
    const steps = scope ? scope.split('/') : parts.slice(0, -1);
    return [steps, name ? `${scope ? name : parts.at(-1)} (${op})` : op];
  }

  #node_at(path) {
    let at = this.tree;
    for (const name of path) at = at?.children.get(name);
    return at;
  }

  #dominant(node) {
    if (node.category >= 0) return node.category;
    const sums = new Map();
    const walk = (n) => {
      if (n.children.size === 0) sums.set(n.category, (sums.get(n.category) ?? 0) + n.units);
      for (const child of n.children.values()) walk(child);
    };
    walk(node);
    return [...sums].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 7;
  }

  #draw_icicle() {
    const host = document.getElementById('icicle');
    const root = this.#node_at(this.path) ?? this.tree;
    const nav = document.getElementById('path');
    nav.replaceChildren(...['Everything', ...this.path].map((name, i) => element('button', {
      type: 'button', 'aria-current': i === this.path.length ? 'true' : undefined,
      onclick: () => this.#show(this.path.slice(0, i)),
    }, name)));
    const width = host.clientWidth || 600, rows = [];
    const place = (node, path, left, depth) => {
      let x = left;
      const children = [...node.children.values()].sort((a, b) => b.units - a.units);
      let rest = 0, rest_units = 0;
      for (const child of children) {
        const share = child.units / root.units;
        if (share * width < 5) {
          ++rest;
          rest_units += child.units;
          continue;
        }
        (rows[depth] ??= []).push({node: child, path: [...path, child.name], left: x, share});
        if (depth < 7) place(child, [...path, child.name], x, depth + 1);
        x += share;
      }
      if (rest && rest_units / root.units * width >= 5)
        (rows[depth] ??= []).push({left: x, share: rest_units / root.units, rest, units: rest_units});
    };
    if (root.units > 0) place(root, this.path, 0, 0);
    const unit = this.history.unit;
    host.style.height = `${Math.max(rows.length, 1) * 34}px`;
    host.replaceChildren(...rows.flatMap((row, depth) => row.map((cell) => {
      const style = `left:${cell.left * 100}%;width:${cell.share * 100}%;top:${depth * 34}px`;
      if (cell.rest) return element('span', {class: 'cell rest', style, title: `${cell.rest} smaller: ${bytes(cell.units * unit)}`}, cell.share * width > 80 ? `${cell.rest} smaller` : '');
      const category = this.#dominant(cell.node);
      const size = bytes(cell.node.units * unit);
      const words = `${cell.node.name}: ${size}, ${count(cell.node.blocks)} of them, ${percent(cell.node.units, this.tree.units)}`;
      const leaf = cell.node.children.size === 0;
      return element('button', {
        type: 'button', class: `cell ${leaf ? 'leaf' : ''}`, title: words, 'aria-label': words, 'data-category': category,
        style: `${style};--fill:${this.colors.categories[category]};--ink:${this.colors.inks[category]}`,
        onclick: () => leaf ? this.#search_for(cell.node.name) : this.#show(cell.path),
      }, element('span', {class: 'cell-name'}, cell.node.name), ' ', element('span', {class: 'cell-size'}, size));
    })));
  }

  #show(path) {
    this.path = path;
    this.#draw_icicle();
    this.#fill_table();
  }

  #search_for(name) {
    this.search.value = name.replace(/ \(.*\)$/, '');
    this.rows = ROWS;
    this.#fill_table();
    this.search.focus();
  }

  // Which labels match the search and the chosen scope.
  #wanted_labels() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const scope = this.path.join('/'), inside = `${scope}/`;
    const names = this.history.head.names;
    return this.history.head.labels.map(([op, of, name, budget, site, , shape, dtype], label) => {
      if (scope && !`${this.#place_of(label).flat().join('/')}/`.startsWith(inside)) return false;
      if (!words.length) return true;
      const text = `${names[op]} ${names[of]} ${names[name]} ${names[budget]} ${names[site]} ${this.history.categories[this.history.category[label]]} ${shape} ${dtype}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
  }

  // The first rows in the chosen order. Only as many as are shown are ever sorted.
  #fill_table() {
    const {history, view, sort} = this;
    const wanted = this.#wanted_labels();
    const found = this.live.filter((b) => wanted[history.label[b]]);
    let sum = 0;
    for (const b of found) sum += history.size[b];
    const sign = sort.down ? -1 : 1;
    let compare;
    if (sort.key === 'bytes') {
      compare = (a, b) => sign * (history.size[a] - history.size[b]) || a - b;
    } else if (sort.key === 'age') {
      compare = (a, b) => -sign * (a - b);
    } else {
      const column = COLUMNS.find(({key}) => key === sort.key);
      const rank = new Map();
      const texts = history.head.labels.map((_, label) => label).filter((label) => wanted[label]);
      const text_of = new Map(texts.map((label) => [label, this.#label_text(label, column)]));
      texts.sort((a, b) => text_of.get(a) < text_of.get(b) ? -1 : text_of.get(a) > text_of.get(b) ? 1 : 0);
      let last = null, number = -1;
      for (const label of texts) {
        if (text_of.get(label) !== last) ++number;
        last = text_of.get(label);
        rank.set(label, number);
      }
      compare = (a, b) => sign * (rank.get(history.label[a]) - rank.get(history.label[b])) || history.size[b] - history.size[a] || a - b;
    }
    const rows = first_of(found, this.rows, compare);
    document.getElementById('table-about').textContent = `${count(found.length)} of ${count(this.live.length)} shown, ${bytes(sum * history.unit)}`;
    document.getElementById('more').hidden = found.length <= rows.length;
    for (const th of document.getElementById('table-head').children)
      th.setAttribute('aria-sort', th.dataset.key === sort.key ? (sort.down ? 'descending' : 'ascending') : 'none');
    document.getElementById('table-body').replaceChildren(...rows.map((b) => this.#row(b, view.selected)));
  }

  #label_text(label, column) {
    const [op, scope, name, , site, , shape, dtype] = this.history.head.labels[label];
    const names = this.history.head.names;
    return String(column.text({op: names[op], scope: names[scope], name: names[name], site: names[site], category: this.history.categories[this.history.category[label]], shape, dtype})).toLowerCase();
  }

  #row(b, moment) {
    const {history} = this;
    const known = history.describe(b);
    const steps = history.step_index(moment) - history.step_index(history.born[b]);
    const age = time(history.time[moment] - history.time[history.born[b]]);
    const cells = this.columns.map((column) => {
      const attributes = {class: `${column.number ? 'number' : ''} ${column.class ?? ''} of-${column.key}`};
      if (column.key === 'bytes') return element('td', {...attributes, 'data-bytes': known.bytes, title: `${count(known.requested)} bytes requested, ${count(known.bytes)} allocated`}, bytes(known.bytes));
      if (column.key === 'age') return element('td', attributes, history.steps.length ? `${count(steps)} ${steps === 1 ? 'step' : 'steps'}` : age, element('span', {class: 'small'}, history.steps.length ? age : ''));
      if (column.key === 'category')
        return element('td', attributes, element('span', {class: 'swatch', style: `--fill:${this.colors.categories[known.category_index]}`}), known.category);
      return element('td', attributes, String(column.text(known)));
    });
    return element('tr', {onmouseenter: () => this.on_point(b), onmouseleave: () => this.on_point(-1)}, ...cells);
  }
}

// The first `n` in order, without sorting all: a heap of the best seen so far.
function first_of(all, n, compare) {
  if (all.length <= 4 * n) return all.slice().sort(compare).slice(0, n);
  const heap = [];  // The worst of the best on top.
  const worse = (a, b) => compare(a, b) > 0;
  const sink = (i) => {
    for (;;) {
      let worst = i;
      for (const child of [2 * i + 1, 2 * i + 2])
        if (child < heap.length && worse(heap[child], heap[worst])) worst = child;
      if (worst === i) return;
      [heap[i], heap[worst]] = [heap[worst], heap[i]];
      i = worst;
    }
  };
  for (const item of all) {
    if (heap.length < n) {
      let i = heap.push(item) - 1;
      for (let up = (i - 1) >> 1; i > 0 && worse(heap[i], heap[up]); i = up, up = (i - 1) >> 1) [heap[i], heap[up]] = [heap[up], heap[i]];
    } else if (worse(heap[0], item)) {
      heap[0] = item;
      sink(0);
    }
  }
  return heap.sort(compare);
}
