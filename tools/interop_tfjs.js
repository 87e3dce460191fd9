// For every model of golden_tfjs.js: TF.js saves it, we train it a little and save it with the optimizer's state, TF.js
// loads that and predicts the same. And both train alike from the same weights.
'use strict';
const {execFileSync} = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const tf = require('@tensorflow/tfjs');

const ours = (...argv) => execFileSync('build/plimsoll', argv, {maxBuffer: 1 << 28, encoding: 'utf8'});
const asJson = (tensors) => JSON.stringify(tensors.map((t) => ({shape: t.shape, dtype: t.dtype, data: Array.from(t.dataSync())})));
function worst(a, b) {
  if (a.length != b.length) return Infinity;
  return Math.max(...a.map((v, i) => Math.abs(v - b[i]) / (1e-5 + 1e-5 * Math.abs(v))));
}
function check(good, what) {
  if (good) return;
  console.error('interop_tfjs: ' + what);
  process.exit(1);
}

// What `plimsoll train` reads: x, or x0, x1, ..; y likewise. npz is a zip of stored npy files.
function npy(tensor) {
  let header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${tensor.shape.join(', ')},), }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + '\n';
  const head = Buffer.alloc(10);
  head.write('\x93NUMPY\x01\x00', 'latin1');
  head.writeUInt16LE(header.length, 8);
  return Buffer.concat([head, Buffer.from(header), Buffer.from(Float32Array.from(tensor.dataSync()).buffer)]);
}
function crc32(data) {
  let crc = -1;
  for (const byte of data) {
    crc ^= byte;
    for (let k = 0; k < 8; ++k) crc = crc & 1 ? (crc >>> 1) ^ 0xEDB88320 : crc >>> 1;
  }
  return (crc ^ -1) >>> 0;
}
function npz(entries) {
  const parts = [], index = [];
  let offset = 0;
  for (const [name, data] of entries) {
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(data.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(name), data]);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    index.push(Buffer.concat([Buffer.from('PK\x01\x02'), Buffer.from([20, 0]), common, tail, Buffer.from(name)]));
    parts.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(index), end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, directory, end]);
}
const named = (letter, tensors) =>
    tensors.map((t, i) => [letter + (tensors.length > 1 ? i : '') + '.npy', npy(t)]);

async function main() {
  await tf.setBackend('cpu');
  const golden = require('./golden_tfjs.js')(tf);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'interop_tfjs_'));
  let largest = 0, curves = 0;
  for (const name of golden.names) {
    const {model, inputs} = golden.build(name);
    const first = path.join(folder, 'first'), second = path.join(folder, 'second');
    await model.save(golden.writer(first));
    const targets = golden.predict(model, inputs).map((y) => y.mul(0.9));
    fs.writeFileSync(path.join(folder, 'x.json'), asJson(inputs));
    fs.writeFileSync(path.join(folder, 'data.npz'), npz([...named('x', inputs), ...named('y', targets)]));
    const report = JSON.parse(ours('train', path.join(first, 'model.json'), '--data', path.join(folder, 'data.npz'), '--epochs',
        '3', '--batch', '3', '--no-shuffle', '--loss', 'mse', '--optimizer', 'sgd', '--learning-rate', '0.05', '--out', second,
        '--json'));
    const got = JSON.parse(ours('predict', path.join(second, 'model.json'), '--input', path.join(folder, 'x.json'), '--json'));
    const loaded = await tf.loadLayersModel(golden.reader(second));
    const theirs = golden.predict(loaded, inputs);
    theirs.forEach((y, i) => {
      const distance = worst(Array.from(y.dataSync()), got.outputs[i].data);
      largest = Math.max(largest, distance);
      check(distance <= 1, `${name}, output ${i}: TF.js predicts otherwise, ${distance} times what is allowed`);
    });
    // The same steps in TF.js, without layers that draw random numbers and kernels without gradients.
    if (!/dropouts|dilated/.test(name) && model.trainableWeights.length > 0) {
      model.compile({optimizer: tf.train.sgd(0.05), loss: 'meanSquaredError'});
      for (let step = 0; step < 3; ++step) {
        const x = inputs.length == 1 ? inputs[0] : inputs, y = targets.length == 1 ? targets[0] : targets;
        const loss = [].concat(await model.trainOnBatch(x, y))[0];
        const difference = Math.abs(loss - report.history.loss[step]);
        curves = Math.max(curves, difference);
        check(difference < 1e-4 * (1 + Math.abs(loss)), `${name}: step ${step}: loss ${loss} there, ${report.history.loss[step]} here`);
      }
    }
  }
  fs.rmSync(folder, {recursive: true});
  console.log(`TF.js loads ${golden.names.length} models that we trained and saved, and predicts the same ` +
              `(${largest.toFixed(3)} of what is allowed); losses of training differ by ${curves.toExponential(1)} at most`);
}
main().catch((error) => check(false, error.stack));
