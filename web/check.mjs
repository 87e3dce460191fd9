// Opens reports in a browser, as a person would, and checks what they show.
// usage: node check.mjs PACKAGES PROGRAM TRACES [PICTURES]
//   PACKAGES   the folder in which npm installed package.json, with what is only needed for this
//   PROGRAM    the plimsoll program;  TRACES  the folder that make_traces filled;  PICTURES  a folder for what was seen
import assert from 'node:assert/strict';
import {execFileSync, spawn} from 'node:child_process';
import {existsSync, mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {cpus, loadavg} from 'node:os';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const [packages, program, traces, pictures] = process.argv.slice(2).map((name) => path.resolve(name));
const require = createRequire(path.join(packages, 'package.json'));
const puppeteer = require('puppeteer-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const browser_path = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
if (!browser_path) throw new Error('no browser; tools/setup browser installs one');

const OPENS_MS = 3000, TASK_MS = 100, TRIES = 4;

function make(name) {
  const trace = path.join(traces, `${name}.trace`), html = path.join(traces, `${name}.html`);
  const json = execFileSync(program, ['report', trace, '-o', html, '--json'], {encoding: 'utf8', maxBuffer: 1 << 28});
  return {url: pathToFileURL(html).href, json: JSON.parse(json)};
}

const browser = await puppeteer.launch({executablePath: browser_path, args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb']});

// A page that notes complaints, requests and long tasks. Returns how long it took until it was ready, and the processor
// time of the page's thread until then, in milliseconds.
async function open(url, {width = 1280, height = 900, scheme = 'light', scale = 1} = {}) {
  const page = await browser.newPage();
  const complaints = [];
  page.on('console', (message) => ['error', 'warn', 'assert'].includes(message.type()) && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => !/^(file|data|blob):/.test(request.url()) && complaints.push(`asked for ${request.url()}`));
  await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: scheme}]);
  await page.setViewport({width, height, isMobile: width < 600, hasTouch: width < 600, deviceScaleFactor: scale});
  await page.evaluateOnNewDocument(() => {
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({startTime, duration}) => ({startTime, duration})))).observe({entryTypes: ['longtask']});
  });
  const session = await page.createCDPSession();
  await session.send('Performance.enable', {timeDomain: 'threadTicks'});
  await page.goto(url);
  await page.waitForSelector('html[data-ready=yes]', {timeout: 30000});
  const ready = await page.evaluate(() => performance.now());
  const {metrics} = await session.send('Performance.getMetrics');
  return {page, complaints, ready, busy: 1000 * metrics.find(({name}) => name === 'TaskDuration').value};
}

async function picture(page, name) {
  if (!pictures) return;
  await settle(page);
  await page.screenshot({path: path.join(pictures, `${name}.png`)});
}

// What a server prints first.
function first_words(child) {
  return new Promise((resolve, reject) => {
    child.stdout.once('data', (text) => resolve(String(text)));
    child.once('exit', (code) => reject(new Error(`it ended with ${code}`)));
  });
}

async function until(what, seconds, condition) {
  for (const end = Date.now() + 1000 * seconds; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 200))) {
    const found = await condition();
    if (found) return found;
  }
  throw new Error(`not within ${seconds} s: ${what}`);
}

// The page that compares two runs, wide and narrow.
async function check_comparison() {
  const html = path.join(traces, 'compare.html');
  execFileSync(program, ['report', '--compare', path.join(traces, 'training.trace'), path.join(traces, 'by_hand.trace'), '-o', html]);
  for (const width of [500, 1400]) {
    const page = await browser.newPage();
    await page.setViewport({width, height: 900});
    await page.goto(pathToFileURL(html).href);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width} pixels need no sideways scrolling`);
    assert.ok((await page.$$('tbody tr')).length > 8, 'figures of both');
    await check_access(page, `comparison, ${width}`);
    await picture(page, `compare_${width}`);
    await page.close();
  }
  console.log('comparison: fits 500 and 1400 pixels');
}

// The page of `plimsoll serve` shows the same; without the token, nothing.
async function check_live() {
  const server = spawn(program, ['serve', path.join(traces, 'training.trace')]);
  try {
    const url = /http:\S+/.exec(await first_words(server))[0];
    const {page, complaints} = await open(url);
    await check_numbers(page, make('training').json);
    await check_access(page, 'live');
    assert.equal(await page.$eval('#live', (button) => button.textContent), 'Complete');
    assert.equal(await page.evaluate(() => location.hash), '', 'the token is not in the address bar');
    assert.deepEqual(complaints.filter((text) => !text.startsWith(`asked for ${new URL(url).origin}/`)), []);
    await page.close();
    const stranger = await browser.newPage();
    await stranger.goto(url.replace(/#.*/, ''));
    await settle(stranger);
    assert.match(await stranger.$eval('#loading', (element) => element.textContent), /needs the token/);
    await stranger.close();
    console.log('live: the served page shows the run, and nothing without its token');
  } finally {
    server.kill('SIGINT');
  }
}

// The page of a process that trains meanwhile: the timeline grows, a moment that was chosen stays, it can be paused, and
// it says when the process is gone.
async function check_growing() {
  const runtime = path.join(traces, 'runtime');
  mkdirSync(runtime, {mode: 0o700});
  const rows = Array.from({length: 6000}, (_, i) => `${i % 5},${i % 3},${i % 2 ? 'rose' : 'tulip'}`);
  writeFileSync(path.join(traces, 'flowers.csv'), ['length,width,kind', ...rows, ''].join('\n'));
  const environment = {...process.env, XDG_RUNTIME_DIR: runtime, PLIMSOLL_THREADS: '1'};
  const trainer = spawn(program, ['train', '--data', 'flowers.csv', '--batch', '1000', '--epochs', '100000', '--out', 'model'],
      {cwd: traces, env: {...environment, PLIMSOLL_LIVE: '1'}, stdio: 'ignore'});
  let server = null;
  try {
    await until('the process publishes', 30, () => existsSync(path.join(runtime, 'plimsoll', `${trainer.pid}.socket`)));
    server = spawn(program, ['serve', String(trainer.pid)], {env: environment});
    const {page, complaints} = await open(/http:\S+/.exec(await first_words(server))[0]);
    const look = () => page.evaluate(() => ({moments: window.report.history.moments, time: window.report.history.duration, end: window.report.view.end(), to: window.report.view.to,
      selected: window.report.view.selected, at: window.report.history.time[window.report.view.selected], about: document.getElementById('moment-about').textContent}));
    await until('some steps are there', 30, async () => (await look()).moments > 100);
    const before = await look();
    await picture(page, 'live_before');
    await until('the timeline grew', 30, async () => (await look()).time > before.time + 3e9);
    const after = await look();
    assert.equal(after.to, after.end, 'the whole run stays in sight');
    const box = await box_of(page, '#timeline .u-over');
    await page.mouse.click(box.x + box.width * 0.3, box.y + 60);
    await settle(page);
    const chosen = await look();
    assert.ok(Math.abs(chosen.at / chosen.time - 0.3) < 0.1, `a click chooses the moment under it: ${chosen.at} of ${chosen.time}`);
    assert.notEqual(chosen.about, after.about, 'what was live then is listed');
    await until('it grew again', 30, async () => (await look()).time > chosen.time + 1e9);
    assert.ok(Math.abs((await look()).at - chosen.at) < 0.02 * chosen.time, 'the chosen moment stays');
    await picture(page, 'live_after');
    await page.click('#live');
    const paused = await look();
    await new Promise((resolve) => setTimeout(resolve, 2500));
    assert.equal((await look()).time, paused.time, 'paused');
    await page.click('#live');
    await until('it goes on', 30, async () => (await look()).time > paused.time);
    trainer.kill('SIGKILL');
    await until('the end is shown', 30, () => page.$eval('#live', (button) => button.dataset.state === 'complete'));
    assert.deepEqual(complaints.filter((text) => !text.startsWith('asked for http://127.0.0.1:')), []);
    await page.$eval('#timeline-title', (title) => title.scrollIntoView());
    await settle(page);
    await until('the map is painted', 30, () => page.evaluate(() => window.report.map.painted === window.report.map.run));
    await picture(page, 'live_ended');
    await page.close();
    console.log(`live: the timeline of a training grew from ${(before.time / 1e9).toFixed(1)} to ${(after.time / 1e9).toFixed(1)} s; moments can be chosen, and it can be paused`);
  } finally {
    trainer.kill('SIGKILL');
    server?.kill('SIGINT');
  }
}

// Where an element is, once it is in sight.
async function box_of(page, selector) {
  await page.$eval(selector, (element) => element.scrollIntoView({block: 'center'}));
  await settle(page);
  return (await page.$(selector)).boundingBox();
}

const settle = (page) => page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 150)));

// What the page shows equals what the program prints.
async function check_numbers(page, json) {
  const shown = await page.evaluate(() => {
    const number = (name, key) => Number(document.querySelector(`[data-figure="${name}"]`).dataset[key]);
    const {history, view} = window.report;
    const parts = [...history.composition(history.peak, new Float64Array(9))].map((units) => units * history.unit);
    const unused = parts.pop();
    parts[5] += unused;  // Counted as workspace by the program.
    const titles = [...document.querySelectorAll('.finding:not(.good) h3')].map((title) => title.textContent);
    const about = document.getElementById('moment-about').dataset;
    return {peak: number('peak', 'bytes'), limit: number('limit', 'bytes'), reserved: number('reserved', 'bytes'), events: number('events', 'count'),
      refusals: number('refusals', 'count'), counted: history.total[history.peak] * history.unit, moment: history.peak, parts, unused, titles, blocks: history.blocks,
      moments: history.moments, live: Number(about.bytes), selected: view.selected, steps: history.steps.length, first: document.querySelector('#table-body .of-bytes')?.dataset.bytes};
  });
  assert.equal(shown.peak, json.peak_bytes);
  assert.equal(shown.counted, json.peak_bytes, 'the peak that the page adds up itself');
  assert.equal(shown.live, json.peak_bytes, 'what is live at the chosen moment');
  assert.equal(shown.moment, json.peak_moment);
  assert.equal(shown.limit, json.limit.bytes);
  assert.equal(shown.reserved, json.peak_reserved_bytes);
  assert.equal(shown.events, json.events);
  assert.equal(shown.refusals, json.refusals);
  assert.equal(shown.blocks, json.blocks);
  assert.equal(shown.moments, json.moments);
  assert.equal(shown.steps, json.steps);
  assert.deepEqual(shown.parts, Object.values(json.peak_by_category));
  assert.equal(shown.unused, json.peak_unused_plan_bytes);
  assert.deepEqual(shown.titles, json.findings.map(({title}) => title));
  // Any moment: the totals kept, the parts and the list of what is live agree.
  const wrong = await page.evaluate(() => {
    const {history} = window.report;
    for (let i = 0; i <= 20; ++i) {
      const moment = Math.floor((history.moments - 1) * i / 20);
      const live = history.live(moment).reduce((sum, b) => sum + history.size[b], 0);
      const parts = history.composition(moment, new Float64Array(9)).reduce((sum, units) => sum + units, 0);
      const fullest = history.fullest(Math.max(moment - 5000, 0), moment + 1);
      let most = fullest;
      for (let m = Math.max(moment - 5000, 0); m <= moment; ++m) if (history.is_fuller(m, most)) most = m;
      if (live !== history.total[moment] || parts !== history.total[moment] || most !== fullest) return {moment, live, parts, total: history.total[moment], most, fullest};
    }
    return null;
  });
  assert.equal(wrong, null);
}

// Nothing that is read is cut: sizes of the table, numbers of steps over the timeline.
async function check_layout(page, where) {
  const cut = await page.evaluate(() => {
    const frame = document.querySelector('.table-frame').getBoundingClientRect();
    return [...document.querySelectorAll('th[data-key=bytes], td.of-bytes')].filter((cell) => {
      const box = cell.getBoundingClientRect();
      return box.right > frame.right + 1 || box.left < frame.left - 1 || cell.scrollWidth > cell.clientWidth + 1;
    }).map((cell) => cell.textContent);
  });
  assert.deepEqual(cut, [], `sizes that are cut, ${where}`);
  const over = await page.evaluate(() => {
    const named = [...document.querySelectorAll('.marks .step')].filter((mark) => mark.textContent).map((mark) => ({text: mark.textContent, ...mark.getBoundingClientRect().toJSON()}));
    const host = document.getElementById('marks').getBoundingClientRect();
    return named.filter((mark, i) => mark.right > host.right + 1 || (i > 0 && mark.left < named[i - 1].right - 0.5)).map(({text}) => text);
  });
  assert.deepEqual(over, [], `numbers of steps that overlap or are cut, ${where}`);
}

async function check_access(page, where) {
  await page.evaluate(axe);
  const {violations} = await page.evaluate(() => window.axe.run(document, {resultTypes: ['violations']}));
  assert.deepEqual(violations.map(({id, nodes}) => `${id}: ${nodes.slice(0, 3).map(({html}) => html).join(' ')}`), [], `axe, ${where}`);
}

async function check_use(page) {
  await page.focus('#charts');
  const selected = () => page.evaluate(() => window.report.view.selected);
  const peak = await selected();
  await page.keyboard.press('ArrowLeft');
  assert.notEqual(await selected(), peak, 'an arrow key moves');
  await page.keyboard.press('p');
  assert.equal(await selected(), peak, 'p goes to the peak');
  await page.keyboard.press('+');
  await settle(page);
  assert.ok(await page.evaluate(() => window.report.view.to - window.report.view.from < window.report.view.end()), '+ zooms in');
  await page.keyboard.press('0');
  await page.click('[data-axis=moment]');
  await settle(page);
  assert.equal(await page.evaluate(() => window.report.view.to), await page.evaluate(() => window.report.history.moments - 1));
  // Between two steps of a plan much changes at once: what is shown is what is there afterwards.
  const dips = await page.evaluate(() => {
    const {history} = window.report;
    let found = 0;
    for (let m = 0; m < history.moments; ++m) {
      const settled = history.settled[m];
      if (history.time[settled] !== history.time[m] || (settled + 1 < history.moments && history.time[settled + 1] === history.time[m])) ++found;
    }
    return found;
  });
  assert.equal(dips, 0);
  await page.click('[data-axis=time]');
  const rows = () => page.$$eval('#table-body tr', (all) => all.length);
  const all = await rows();
  await page.type('#search', 'no such tensor anywhere');
  assert.equal(await rows(), 0, 'a search that finds nothing');
  await page.$eval('#search', (search) => { search.value = ''; search.dispatchEvent(new Event('input')); });
  assert.equal(await rows(), all);
  await page.click('th[data-key=op] button');
  const ops = await page.$$eval('#table-body .of-op', (cells) => cells.map((cell) => cell.textContent.toLowerCase()));
  assert.deepEqual(ops, [...ops].sort(), 'sorted by operation');
  await page.click('th[data-key=bytes] button');
  const box = await box_of(page, '#timeline .u-over');
  await page.mouse.move(box.x + box.width * 0.7, box.y + 60);
  await settle(page);
  assert.match(await page.$eval('#tip', (tip) => tip.textContent), /in use/, 'pointing names what is there');
  await page.mouse.move(10, 10);
}

// Pointing, choosing, moving and zooming; the longest task meanwhile, in milliseconds.
async function scrub(page) {
  const from = await page.evaluate(() => performance.now());
  const box = await box_of(page, '#timeline .u-over');
  for (let i = 0; i <= 40; ++i) await page.mouse.move(box.x + box.width * i / 40, box.y + 80);
  for (let i = 1; i < 6; ++i) await page.mouse.click(box.x + box.width * i / 6, box.y + 80);
  await page.focus('#charts');
  for (let i = 0; i < 12; ++i) await page.keyboard.press(i % 3 === 2 ? '+' : 'ArrowRight');
  const map = await box_of(page, '#map');
  for (let i = 0; i <= 20; ++i) await page.mouse.move(map.x + map.width * (0.1 + 0.8 * i / 20), map.y + 90);
  await page.keyboard.press('0');
  await settle(page);
  return page.evaluate((since) => Math.max(0, ...window.tasks.filter(({startTime}) => startTime >= since).map(({duration}) => duration)), from);
}

try {
  const training = make('training'), by_hand = make('by_hand'), leak = make('leak'), million = make('million');
  assert.ok(training.json.plan_runs.all > 20, 'steps of the training are planned');
  assert.equal(training.json.plan_runs.shown, training.json.plan_runs.all);
  for (const category of ['parameters', 'gradients', 'optimizer', 'activations'])
    assert.ok(training.json.peak_by_category[category] > 0, `${category} are told apart inside of a planned step`);
  assert.ok(training.json.limit.own_peak_bytes <= training.json.limit.own_bytes, 'a budget is not passed');
  assert.ok(million.json.events >= 1_000_000, `${million.json.events} events`);

  for (const [name, options] of [['light', {}], ['dark', {scheme: 'dark'}], ['phone', {width: 390, height: 844, scale: 2}], ['narrow', {width: 500, height: 900}]]) {
    const {page, complaints} = await open(training.url, options);
    await check_numbers(page, training.json);
    await check_access(page, name);
    await check_layout(page, name);
    if (name === 'light' || name === 'dark') await check_use(page);
    else assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth + 1), `${name} needs no sideways scrolling`);
    await settle(page);
    assert.deepEqual(complaints, [], name);
    await page.close();
    console.log(`training, ${name}: numbers, access, layout${name === 'phone' || name === 'narrow' ? '' : ', use'} as they should be`);
  }

  const eager = await open(by_hand.url);
  await check_numbers(eager.page, by_hand.json);
  assert.deepEqual(eager.complaints, []);
  await eager.page.close();
  console.log('training by hand: numbers as they should be');

  const leaking = await open(leak.url);
  await check_numbers(leaking.page, leak.json);
  await check_access(leaking.page, 'leak');
  for (const kind of ['growth', 'session never closed', 'graph grows', 'persistent tape'])
    assert.ok(await leaking.page.$(`[data-kind="${kind}"]`), `"${kind}" is found`);
  assert.deepEqual(leaking.complaints, []);
  await leaking.page.close();
  console.log('leak: every injected fault is named');

  const bunched = await open(make('bunched').url);
  await check_layout(bunched.page, 'steps that bunch');
  assert.ok((await bunched.page.$$eval('.marks .step', (marks) => marks.filter((mark) => mark.textContent).length)) >= 2, 'some steps are numbered');
  assert.deepEqual(bunched.complaints, []);
  await bunched.page.close();
  console.log('bunched: no number over another');

  const refused = make('refused'), red = await open(refused.url);
  await check_numbers(red.page, refused.json);
  await check_access(red.page, 'refused');
  const first = await red.page.$eval('#findings .finding', (finding) => ({kind: finding.dataset.kind, problem: finding.classList.contains('problem'), text: finding.textContent}));
  assert.equal(first.kind, 'refused');
  assert.ok(first.problem, 'a refusal is a problem');
  assert.match(first.text, /Budget "fit" refused a request/);
  assert.equal(await red.page.$('.finding.good'), null, 'nothing is called good');
  assert.ok(await red.page.$('#events .refused'), 'it is in the list of events');
  assert.deepEqual(red.complaints, []);
  await red.page.close();
  console.log('refused: the refusal stands first, in red');

  await check_comparison();
  await check_live();
  await check_growing();

  let best = {ready: Infinity, busy: Infinity}, longest = Infinity;
  for (let i = 0; i < TRIES && (best.ready > OPENS_MS || longest > TASK_MS); ++i) {  // Other work on the machine disturbs.
    const opened = await open(million.url);
    best.ready = Math.min(best.ready, opened.ready);
    best.busy = Math.min(best.busy, opened.busy);
    if (i === 0) await check_numbers(opened.page, million.json);
    await settle(opened.page);
    longest = Math.min(longest, await scrub(opened.page));
    assert.deepEqual(opened.complaints, []);
    await opened.page.close();
  }
  const is_loaded = loadavg()[0] > cpus().length;  // Then the clock says little: the processor time must do.
  console.log(`million: ${million.json.events} events, ready after ${Math.round(best.ready)} ms (${Math.round(best.busy)} ms of processor time), ` +
      `longest task while scrubbing ${Math.round(longest)} ms${is_loaded ? '; other work keeps the machine busy: not judged by the clock' : ''}`);
  assert.ok((is_loaded ? best.busy : best.ready) < OPENS_MS, `opens within ${OPENS_MS} ms`);
  assert.ok(is_loaded || longest <= TASK_MS, `no task over ${TASK_MS} ms`);
} finally {
  await browser.close();
}
