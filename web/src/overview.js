// Above the charts: figures and findings; below them: forecast and measurement.
import {bytes, count, element, percent, time} from './format.js';

const LEVELS = {problem: 'Problem', warning: 'Warning', note: 'Note'};

function figure(title, value, note, attributes = {}) {
  return element('div', {class: 'figure', ...attributes}, element('dt', {}, title), element('dd', {class: 'value'}, value), element('dd', {class: 'note'}, note));
}

export function show_figures({summary}) {
  const {limit, peak_bytes: peak} = summary;
  const where = [summary.peak_step !== null ? `step ${count(summary.peak_step)}` : '', summary.peak_phase].filter(Boolean).join(', ');
  const {own_bytes: own, own_peak_bytes: used, outside_bytes: outside} = limit;
  const first = figure('Peak in use', bytes(peak), `${where ? `${where}, ` : ''}at ${time(summary.peak_time_ns, summary.duration_ns)}`, {'data-figure': 'peak', 'data-bytes': peak});
  const second = figure(limit.name.startsWith('budget') ? 'Budget' : 'Limit', own > 0 ? bytes(own) : '–',
      own > 0 ? `${limit.name.replace(/^budget /, '')}: ${percent(used, own)} used at most${outside > 0 ? `; ${bytes(outside)} more held outside it` : ''}` : 'none was recorded', {'data-figure': 'limit', 'data-bytes': limit.bytes});
  if (own > 0 && used / own > 0.005)
    second.append(element('dd', {}, element('div', {class: 'gauge', role: 'img', 'aria-label': `${percent(used, own)} of the limit`},
        element('span', {class: used > 0.9 * own ? 'tight' : '', style: `width:${Math.min(100, 100 * used / own)}%`}))));
  const figures = [
    first,
    second,
    figure('Reserved at most', bytes(summary.peak_reserved_bytes), peak > 0 ? `${(summary.peak_reserved_bytes / peak).toFixed(2)} × the peak in use` : '', {'data-figure': 'reserved', 'data-bytes': summary.peak_reserved_bytes}),
  ];
  if (summary.forecast)
    figures.push(figure('Forecast peak', bytes(summary.forecast.peak_bytes), `measured: ${percent(peak, summary.forecast.peak_bytes)} of it`, {'data-figure': 'forecast', 'data-bytes': summary.forecast.peak_bytes}));
  figures.push(figure('Run', time(summary.duration_ns), `${summary.steps ? `${count(summary.steps)} steps, ` : ''}${count(summary.events)} events`, {'data-figure': 'events', 'data-count': summary.events}));
  figures.push(figure('Refused', count(summary.refusals), summary.refusals ? 'requests that did not fit' : 'every request was served', {'data-figure': 'refusals', 'data-count': summary.refusals}));
  document.getElementById('figures').replaceChildren(...figures);
}

// Problems are above the charts, notes below them.
export function show_findings({summary}, go_to) {
  const show = (finding) => element('li', {class: `finding ${finding.level}`, 'data-kind': finding.kind},
      element('div', {class: 'finding-head'},
          element('span', {class: 'badge'}, LEVELS[finding.level]),
          element('h3', {}, finding.title)),
      element('p', {class: 'evidence'}, finding.evidence ? `${finding.evidence[0].toUpperCase()}${finding.evidence.slice(1)}.` : ''),
      finding.remedy ? element('p', {class: 'remedy'}, element('strong', {}, finding.level === 'note' ? 'Hint: ' : 'What to do: '), `${finding.remedy}.`) : '',
      summary.moments > 0 && finding.kind !== 'incomplete trace' ?
          element('button', {type: 'button', class: 'link', onclick: () => go_to(finding.moment)}, 'Show this moment') : '');
  const notes = summary.findings.filter(({level}) => level === 'note'), shown = summary.findings.filter(({level}) => level !== 'note').map(show);
  if (!shown.length)
    shown.push(element('li', {class: 'finding good'}, element('div', {class: 'finding-head'}, element('span', {class: 'badge'}, 'Good'),
        element('h3', {}, 'Nothing grows, nothing was refused')), element('p', {class: 'evidence'}, summary.steps >= 4 ?
            `Live memory at the start of each of ${count(summary.steps)} steps stays the same.` : 'The trace has fewer than four steps, too few to judge growth per step.')));
  document.getElementById('findings').replaceChildren(...shown);
  document.getElementById('notes').replaceChildren(...notes.map(show));
  document.getElementById('notes-section').hidden = notes.length === 0;
}

export function show_forecast({summary, categories}, colors) {
  const {forecast} = summary;
  if (!forecast) return;
  document.getElementById('forecast-section').hidden = false;
  const most = Math.max(forecast.peak_bytes, summary.peak_bytes, 1);
  const bar = (title, total, by_category) => element('div', {class: 'bar-row'},
      element('p', {class: 'bar-title'}, `${title}: `, element('strong', {}, bytes(total))),
      element('div', {class: 'stacked', role: 'img', 'aria-label': `${title} ${bytes(total)}: ${categories.filter((name) => by_category[name] > 0).map((name) => `${name} ${bytes(by_category[name])}`).join(', ')}`},
          ...categories.map((name, i) => element('span', {title: `${name} ${bytes(by_category[name])}`, style: `width:${100 * by_category[name] / most}%;background:${colors.categories[i]}`}))));
  const rows = categories.filter((name) => forecast.by_category[name] > 0 || summary.peak_by_category[name] > 0).map((name) =>
      element('tr', {}, element('th', {scope: 'row'}, name), element('td', {class: 'number'}, bytes(forecast.by_category[name])), element('td', {class: 'number'}, bytes(summary.peak_by_category[name]))));
  const parts = [bar('Forecast before the run', forecast.peak_bytes, forecast.by_category), bar('Measured at the peak', summary.peak_bytes, summary.peak_by_category)];
  parts.push(element('table', {class: 'plain'}, element('thead', {}, element('tr', {}, ...['Category', 'Forecast', 'Measured'].map((title, i) => element('th', {scope: 'col', class: i ? 'number' : ''}, title)))), element('tbody', {}, ...rows)));
  document.getElementById('forecast').replaceChildren(...parts);
}

export function show_gaps({summary}) {
  const words = [];
  if (!summary.complete) words.push('The recording is incomplete.');
  const {all, shown} = summary.plan_runs;
  if (shown < all) words.push(`${count(shown)} of ${count(all)} planned steps are shown value by value; the others as one block.`);
  if (summary.dropped_events > 0) words.push(`${count(summary.dropped_events)} events are missing.`);
  document.getElementById('gaps').textContent = words.join(' ');
}
