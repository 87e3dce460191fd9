// Takes the pictures that the documentation shows.   usage: node pictures.mjs PACKAGES DEMO TERMINAL OUT
//   DEMO  a folder with report.html;  TERMINAL  what `plimsoll demo` printed on a terminal;  OUT  docs/images
import {existsSync, mkdirSync, readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';
import {pathToFileURL} from 'node:url';

const [packages, demo, terminal, out] = process.argv.slice(2).map((name) => path.resolve(name));
const puppeteer = createRequire(path.join(packages, 'package.json'))('puppeteer-core');
const browser_path = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
mkdirSync(out, {recursive: true});
const browser = await puppeteer.launch({executablePath: browser_path, args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb']});
const settle = () => new Promise((resolve) => setTimeout(resolve, 600));

async function report(name, {width, height, scheme = 'light', scale = 1, act = async () => {}}) {
  const page = await browser.newPage();
  await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: scheme}]);
  await page.setViewport({width, height, deviceScaleFactor: scale, isMobile: width < 600, hasTouch: width < 600});
  await page.goto(pathToFileURL(path.join(demo, 'report.html')).href);
  await page.waitForSelector('html[data-ready=yes]');
  await settle();
  await act(page);
  await settle();
  await page.screenshot({path: path.join(out, `${name}.png`)});
  await page.close();
}

async function look_closer(page) {  // At one step, with the pointer on it.
  await page.evaluate(() => {
    const {history} = window.report, {steps} = history, step = Math.floor(steps.length / 2);
    const length = steps[step + 1].time - steps[step].time;
    window.report.zoom(steps[step].time - 0.06 * length, steps[step].time + 1.3 * length);
    document.querySelector('#timeline-title').scrollIntoView();
  });
  await settle();
  const box = await (await page.$('#timeline .u-over')).boundingBox();
  await page.mouse.move(box.x + box.width * 0.42, box.y + 120);
}

async function some_steps(page) {  // With the end of an epoch among them.
  await page.evaluate(() => {
    const {steps} = window.report.history;
    window.report.zoom(steps[9].time, steps[35].time);
    window.report.by_step(22);
  });
}

await report('report_light', {width: 1240, height: 1310, act: some_steps});
await report('report_dark', {width: 1240, height: 900, scheme: 'dark', act: look_closer});
await report('report_phone', {width: 390, height: 844, act: (page) => page.evaluate(() => document.querySelector('#timeline-title').scrollIntoView())});

// What was written last in each line of the terminal, as it looked.
const lines = readFileSync(terminal, 'utf8').replace(/\x1b\[[0-9;?]*[a-zA-Z]/g, '').split('\n').map((line) => line.replace(/\r+$/, '').split('\r').pop().trimEnd());
while (lines.length && !lines[lines.length - 1]) lines.pop();
const page = await browser.newPage();
await page.setViewport({width: 1140, height: 100});
await page.setContent(`<body style="margin:0;background:#10161c"><pre style="margin:0;padding:18px 22px;color:#dfe7ee;font:13.5px/1.5 'DejaVu Sans Mono',monospace;white-space:pre-wrap"></pre>`);
await page.$eval('pre', (pre, text) => { pre.textContent = text; }, ['$ make demo', ...lines].join('\n'));
await (await page.$('pre')).screenshot({path: path.join(out, 'demo_terminal.png')});
await browser.close();
