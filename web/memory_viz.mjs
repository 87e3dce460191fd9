// Draws a plot of PyTorch's _memory_viz.py with the page's own script, unchanged, and checks what it drew.
// usage: node memory_viz.mjs PACKAGES SCRIPTS PLOT PEAK PICTURE
//   PACKAGES  as in check.mjs;  SCRIPTS  a copy of PyTorch's torch/utils/viz;  PLOT  the html file;  PEAK  bytes;  PICTURE  a png to write
//
// The plot loads its script from the network, and that loads d3. Both requests are answered here: from SCRIPTS, and from npm's d3.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {existsSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const [packages, scripts, plot, peak, picture] = process.argv.slice(2).map((name, i) => (i === 3 ? Number(name) : path.resolve(name)));
const require = createRequire(path.join(packages, 'package.json'));
const puppeteer = require('puppeteer-core'), esbuild = require('esbuild');
const browser_path = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

// The page names parts of d3 by their own versions; d3 has them all, and they must share one copy.
function d3_version() {
  const named = /["'][^"']*\/d3@(\d+)[^"']*["']/.exec(readFileSync(path.join(scripts, 'MemoryViz.js'), 'utf8'));
  assert.ok(named, 'the page loads d3');
  return Number(named[1]);
}

function bundled_d3(version) {
  const folder = path.join(packages, `d3-${version}`);
  if (!existsSync(path.join(folder, 'node_modules', 'd3')))
    execFileSync('npm', ['install', '--ignore-scripts', '--no-save', '--loglevel=error', '--prefix', folder, `d3@${version}`], {stdio: ['ignore', 2, 2]});
  return esbuild.buildSync({stdin: {contents: 'export * from "d3";', resolveDir: folder}, bundle: true, format: 'esm', write: false}).outputFiles[0].text;
}

function answer(request, d3, d3_url, complaints) {
  const url = request.url(), name = path.basename(new URL(url).pathname);
  const reply = (body) => request.respond({status: 200, contentType: 'text/javascript', headers: {'Access-Control-Allow-Origin': '*'}, body});
  if (/^(file|data|blob):/.test(url)) return request.continue();
  if (url === d3_url) return reply(d3);
  if (/\/d3(-[a-z]+)?@\d/.test(url)) return reply(`export * from "${d3_url}";`);
  if (/\/torch\/utils\/viz\//.test(url) && existsSync(path.join(scripts, name))) return reply(readFileSync(path.join(scripts, name)));
  complaints.push(`asked for ${url}`);
  return request.abort();
}

// What one view drew: shapes, and for stacked areas the highest byte.
const drawn = (page) => page.evaluate(() => {
  const shapes = [...document.querySelectorAll('polygon, rect')].filter((shape) => shape.getClientRects().length > 0);
  let most = 0;
  for (const {__data__: area} of document.querySelectorAll('polygon')) {
    if (!area || !area.offsets) continue;
    area.timesteps.forEach((_, i) => { most = Math.max(most, area.offsets[i] + (Array.isArray(area.size) ? area.size[i] : area.size)); });
  }
  return {shapes: shapes.length, most, lines: document.querySelectorAll('pre').length};
});

const browser = await puppeteer.launch({executablePath: browser_path, args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb']});
try {
  const version = d3_version(), d3 = bundled_d3(version), d3_url = `https://d3.invalid/d3-${version}.js`;
  const page = await browser.newPage(), complaints = [];
  await page.setViewport({width: 1400, height: 900});
  page.on('console', (message) => ['error', 'assert'].includes(message.type()) && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.setRequestInterception(true);
  page.on('request', (request) => answer(request, d3, d3_url, complaints));
  await page.goto(pathToFileURL(plot).href);
  await page.waitForSelector('polygon', {timeout: 60000}).catch((error) => { throw new Error(`nothing is drawn: ${[...complaints, error.message].join('; ')}`); });
  const first = await drawn(page);
  assert.equal(first.most, peak, 'the highest point of the timeline is the peak');
  assert.ok(first.shapes > 50, `${first.shapes} shapes`);
  await page.screenshot({path: picture});
  const choice = (await page.$$('select'))[1];
  const views = await choice.$$eval('option', (options) => options.map((option) => option.textContent));
  assert.ok(views.includes('Active Memory Timeline'), String(views));
  for (const view of views) {
    await choice.select(view);
    await new Promise((resolve) => setTimeout(resolve, 500));
    if (view !== 'Allocator State History') continue;
    const events = await page.$$('pre');  // Choosing an event draws all segments at that time.
    await events[Math.floor(events.length / 2)].click();
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.ok((await page.$$eval('rect', (rects) => rects.length)) > 5, 'blocks in their segments');
    await page.screenshot({path: picture.replace(/\.png$/, '-state.png')});
  }
  assert.deepEqual(complaints, []);
  console.log(`interop_viewers: PyTorch's page (d3 ${version}) drew ${first.shapes} shapes up to ${first.most} bytes; ${views.length} views without an error`);
} finally {
  await browser.close();
}
