// Small models, one for each layer and way to use it, made by the real TensorFlow.js, with fixed weights, their inputs
// and predictions. `save(folder)` writes them in the layout of testdata/tfjs; tools/golden_tfjs runs it.
'use strict';
const fs = require('fs');
const path = require('path');

module.exports = function(tf) {
  const L = tf.layers;
  const seq = (...layers) => tf.sequential({layers});
  const functional = (shapes, f) => {
    const inputs = shapes.map((shape) => tf.input({shape}));
    return tf.model({inputs, outputs: f(...inputs)});
  };
  const rnn = (layer, options) => seq(layer({units: 3, inputShape: [5, 4], ...options}));
  const image = (layer, options) => seq(layer({inputShape: [7, 6, 3], ...options}));
  const series = (layer, options) => seq(layer({inputShape: [8, 3], ...options}));
  const merged = (layer) => functional([[3, 4], [3, 4]], (a, b) => layer.apply([a, b]));
  const conv = {filters: 4, kernelSize: 3};
  const words = (options, ...rest) =>
      seq(L.embedding({inputDim: 9, outputDim: 4, inputLength: 6, ...options}), ...rest);

  const models = {
    'layer-dense-3d': () => seq(L.dense({units: 3, inputShape: [5, 4], useBias: false})),
    'layer-conv2d-strides-same': () => image(L.conv2d, {...conv, strides: [2, 2], padding: 'same', activation: 'relu'}),
    'layer-conv2d-dilated': () => image(L.conv2d, {...conv, kernelSize: [3, 2], dilationRate: 2}),
    'layer-conv1d-strides': () => series(L.conv1d, {...conv, strides: 2, padding: 'same', activation: 'tanh'}),
    'layer-conv1d-dilated': () => series(L.conv1d, {...conv, dilationRate: 2, useBias: false}),
    'layer-depthwise': () => image(L.depthwiseConv2d, {kernelSize: 3, depthMultiplier: 2, padding: 'same'}),
    'layer-separable': () => image(L.separableConv2d, {...conv, activation: 'elu'}),
    'layer-conv2d-transpose-same': () => image(L.conv2dTranspose, {...conv, strides: 2, padding: 'same'}),
    'layer-conv2d-transpose-valid': () => image(L.conv2dTranspose, {...conv, strides: [2, 1]}),
    'layer-max-pooling-2d': () => image(L.maxPooling2d, {poolSize: [3, 2], strides: 2, padding: 'same'}),
    'layer-average-pooling-2d': () => image(L.averagePooling2d, {poolSize: 3, strides: [1, 2], padding: 'same'}),
    'layer-max-pooling-1d': () => series(L.maxPooling1d, {poolSize: 3, strides: 2}),
    'layer-average-pooling-1d': () => series(L.averagePooling1d, {poolSize: 2, padding: 'same'}),
    'layer-global-max-1d': () => series(L.globalMaxPooling1d, {}),
    'layer-global-average-1d': () => series(L.globalAveragePooling1d, {}),
    'layer-global-max-2d': () => image(L.globalMaxPooling2d, {dataFormat: 'channelsLast'}),
    'layer-global-average-2d': () => image(L.globalAveragePooling2d, {dataFormat: 'channelsLast'}),
    'layer-zero-padding': () => image(L.zeroPadding2d, {padding: [[1, 2], [3, 0]]}),
    'layer-cropping': () => image(L.cropping2D, {cropping: [[1, 2], [0, 1]]}),
    'layer-up-sampling': () => image(L.upSampling2d, {size: [2, 3]}),
    'layer-reshape-permute': () =>
        seq(L.reshape({targetShape: [2, 12], inputShape: [4, 6]}), L.permute({dims: [2, 1]}), L.flatten()),
    'layer-repeat-vector': () => seq(L.repeatVector({n: 3, inputShape: [4]})),
    'layer-batch-normalization': () => image(L.batchNormalization, {}),
    'layer-batch-normalization-plain': () => series(L.batchNormalization, {center: false, scale: false, epsilon: 0.01}),
    'layer-normalization': () => series(L.layerNormalization, {}),
    'layer-simple-rnn-backwards': () => rnn(L.simpleRNN, {goBackwards: true, returnSequences: true}),
    'layer-lstm-sigmoid': () => rnn(L.lstm, {recurrentActivation: 'sigmoid', returnSequences: true}),
    'layer-lstm-relu-no-bias': () => rnn(L.lstm, {activation: 'relu', useBias: false}),
    'layer-gru-backwards': () => rnn(L.gru, {goBackwards: true, returnSequences: true, recurrentActivation: 'sigmoid'}),
    'layer-time-distributed': () =>
        seq(L.timeDistributed({layer: L.dense({units: 2, activation: 'softmax'}), inputShape: [5, 4]})),
    'layer-dropouts': () =>
        seq(L.spatialDropout1d({rate: 0.5, inputShape: [5, 4]}), L.gaussianNoise({stddev: 1}),
            L.gaussianDropout({rate: 0.3}), L.alphaDropout({rate: 0.2}), L.dropout({rate: 0.4})),
    'layer-masking-lstm': () => seq(L.masking({maskValue: 0, inputShape: [5, 4]}), L.lstm({units: 3})),
    'layer-embedding-mask-gru': () => words({maskZero: true}, L.gru({units: 3, returnSequences: true}), L.lstm({units: 2})),
    'layer-embedding-mask-bidirectional': () =>
        words({maskZero: true}, L.bidirectional({layer: L.lstm({units: 2}), mergeMode: 'concat'})),
    'layer-activations': () => functional([[6]], (x) => [
      L.reLU({maxValue: 0.6}).apply(x), L.leakyReLU({alpha: 0.2}).apply(x), L.prelu().apply(x), L.elu().apply(x),
      L.thresholdedReLU({theta: 0.4}).apply(x), L.softmax().apply(x),
      ...['softplus', 'softsign', 'selu', 'swish', 'mish', 'hardSigmoid', 'relu6', 'sigmoid', 'tanh', 'linear'].map(
          (activation) => L.activation({activation}).apply(x)),
    ]),
    'layer-nested-shared': () => {
      const inner = seq(L.dense({units: 4, inputShape: [4], activation: 'tanh'}), L.dense({units: 4}));
      const shared = L.dense({units: 3});
      return functional([[4], [4]], (a, b) => [
        L.add().apply([shared.apply(inner.apply(a)), shared.apply(b)]), inner.apply(b)]);
    },
  };
  for (const mode of ['concat', 'sum', 'ave', 'mul'])
    models['layer-bidirectional-' + mode] = () => seq(L.bidirectional(
        {layer: L.gru({units: 3, returnSequences: true}), mergeMode: mode, inputShape: [5, 4]}));
  for (const name of ['add', 'multiply', 'average', 'maximum', 'minimum'])
    models['layer-' + name] = () => merged(L[name]());
  models['layer-concatenate'] = () => merged(L.concatenate({axis: 1}));
  models['layer-dot'] = () => merged(L.dot({axes: [1, 1]}));
  models['layer-dot-normalized'] = () => merged(L.dot({axes: -1, normalize: true}));

  // Values that look random and are always the same.
  const values = (size, salt, scale) =>
      Float32Array.from({length: size}, (_, i) => scale * Math.sin(12.9898 * (i + 1) + 78.233 * (salt + 1)));
  const count = (shape) => shape.reduce((a, b) => a * b, 1);

  function build(name) {
    const model = models[name]();
    model.setWeights(model.weights.map((weight, k) => {
      const data = values(count(weight.shape), k, 0.8);
      if (weight.name.includes('variance')) data.forEach((v, i) => data[i] = 0.5 + Math.abs(v));
      return tf.tensor(data, weight.shape);
    }));
    const inputs = model.inputs.map((input, k) => {
      const shape = [3, ...input.shape.slice(1)];
      if (name.includes('embedding'))
        return tf.tensor(Float32Array.from({length: count(shape)}, (_, i) => (i * 7 + k) % 9 * (i % 6 < 4 ? 1 : 0)), shape);
      const data = values(count(shape), 100 + k, 1.5);
      if (name.includes('masking')) for (let i = 8; i < 16; ++i) data[i] = 0;  // Two steps of the first example.
      return tf.tensor(data, shape);
    });
    return {model, inputs};
  }

  const list = (tensors) => tensors.map((t) => ({name: t.name || '', shape: t.shape, dtype: t.dtype, data: Array.from(t.dataSync())}));
  const predict = (model, inputs) => [].concat(model.predict(inputs.length == 1 ? inputs[0] : inputs));

  // As tf.io's own file handlers do it.
  const writer = (folder) => tf.io.withSaveHandler(async (artifacts) => {
    fs.mkdirSync(folder, {recursive: true});
    const {weightData, weightSpecs, ...rest} = artifacts;
    const document = {...rest, weightsManifest: [{paths: ['weights.bin'], weights: weightSpecs}]};
    fs.writeFileSync(path.join(folder, 'model.json'), JSON.stringify(document));
    fs.writeFileSync(path.join(folder, 'weights.bin'), Buffer.from(tf.io.CompositeArrayBuffer.join(weightData)));
    return {modelArtifactsInfo: {dateSaved: new Date(0), modelTopologyType: 'JSON'}};
  });
  const reader = (folder) => ({load: async () => {
    const document = JSON.parse(fs.readFileSync(path.join(folder, 'model.json')));
    const files = document.weightsManifest.flatMap((group) => group.paths);
    const data = Buffer.concat(files.map((file) => fs.readFileSync(path.join(folder, file))));
    return {...document, weightSpecs: document.weightsManifest.flatMap((group) => group.weights),
            weightData: data.buffer.slice(data.byteOffset, data.byteOffset + data.length)};
  }});

  async function save(folder) {
    for (const name of Object.keys(models)) {
      const {model, inputs} = build(name);
      const to = path.join(folder, name);
      await model.save(writer(to));
      fs.writeFileSync(path.join(to, 'inputs.json'), JSON.stringify(list(inputs)));
      fs.writeFileSync(path.join(to, 'outputs.json'), JSON.stringify(list(predict(model, inputs))));
    }
    return Object.keys(models).length;
  }
  return {names: Object.keys(models), build, predict, writer, reader, save, list};
};
