// Bundles the page into one file and writes it, deflated, as a C++ source.
// usage: node bundle.mjs PACKAGES OUT    (PACKAGES: the folder in which npm installed package.json)
// OUT/page.html is the page without data, OUT/page_template.cc what the library embeds, OUT/made says that both are new.
import {createRequire} from 'node:module';
import {readFileSync, writeFileSync} from 'node:fs';
import {deflateSync} from 'node:zlib';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

const [packages, out] = process.argv.slice(2).map((folder) => path.resolve(folder));
const here = path.dirname(fileURLToPath(import.meta.url));
const {build} = createRequire(path.join(packages, 'package.json'))('esbuild');

async function bundle(entry) {
  const result = await build({
    entryPoints: [path.join(here, 'src', entry)],
    nodePaths: [path.join(packages, 'node_modules')],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['chrome100', 'firefox113', 'safari16.4'],
    legalComments: 'none',
    logLevel: 'warning',
  });
  return result.outputFiles[0].text.trim();
}

// What must not end the element that holds it.
const inside = (text) => text.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
const [style, script] = await Promise.all([bundle('style.css'), bundle('main.js')]);
const page = readFileSync(path.join(here, 'src', 'page.html'), 'utf8')
    .replace('/*style*/', () => style)
    .replace('/*script*/', () => inside(script));
const deflated = deflateSync(Buffer.from(page), {level: 9});
const rows = [];
for (let i = 0; i < deflated.length; i += 40) rows.push(Array.from(deflated.subarray(i, i + 40)).join(','));
writeFileSync(path.join(out, 'page.html'), page);
writeFileSync(path.join(out, 'page_template.cc'), `// Made by web/bundle.mjs.
#include "plimsoll/observe/page_template.h"

namespace {
constexpr unsigned char kDeflated[] = {
${rows.join(',\n')}};
}  // namespace

plimsoll::internal::PageTemplate plimsoll::internal::page_template() noexcept { return {kDeflated, ${Buffer.byteLength(page)}}; }
`);
writeFileSync(path.join(out, 'made'), '');
