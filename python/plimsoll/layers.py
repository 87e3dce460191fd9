"""Layers, with Keras' names, options and defaults. Derive from Layer to write one of your own.

>>> class Scale(pl.layers.Layer):
...     def build(self, input_shape):
...         self.scale = self.add_weight("scale", input_shape[-1:], initializer="ones")
...     def call(self, x):
...         return x * self.scale
>>> model = pl.Sequential([pl.layers.Dense(3, input_shape=(2,)), Scale()])
>>> model.predict(pl.ones((4, 2))).shape
(4, 3)

Initializers, regularizers and constraints are names ("he_normal", "l2", "max_norm") or what Keras writes:
{"class_name": "L2", "config": {"l2": 1e-4}}.
"""
import json as _json
import operator as _op

from ._documentation import document_layers as _document_layers
from ._plimsoll import Input, Layer, LayerOutput, register_layer

_DETERMINISTIC = ("zeros", "ones", "constant", "identity", "Zeros", "Ones")


def _plain(value):
    """As JSON can write it: tuples are lists, numbers of NumPy are Python's."""
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value.item() if hasattr(value, "item") and not isinstance(value, (int, float, bool)) else value


def _settings(arguments):
    """A layer's own arguments as the settings that its file would have."""
    settings = {key: _plain(value) for key, value in arguments.items() if value is not None and key != "self"}
    shape = settings.pop("input_shape", None)
    if shape is not None:
        sizes = list(shape) if isinstance(shape, (list, tuple)) else [shape]
        settings["batch_input_shape"] = [None, *sizes]
    seed = settings.pop("seed", None)
    if seed is not None:
        settings = _seeded(settings, seed)
    return settings


def _seeded(settings, seed):
    """The seed where draws happen: in initializers, or in a layer that draws itself."""
    names = [key for key in settings if key.endswith("initializer")]
    if not names:
        return {**settings, "seed": seed}
    for place, key in enumerate(names):
        given = settings[key]
        if isinstance(given, str) and given not in _DETERMINISTIC:
            settings[key] = {"class_name": "".join(part.capitalize() for part in given.split("_")),
                             "config": {"seed": seed + place}}
    return settings


def _activation(value):
    """pl.relu for "relu"."""
    name = getattr(value, "__name__", None)
    if callable(value) and (name is None or name == "<lambda>"):
        raise TypeError("activation: a name such as \"relu\", or pl.relu; for a function of your own add pl.layers.Lambda(function)")
    return name if callable(value) else value


class _OfLibrary(Layer):
    """A layer of the library, by the name of its class and its settings."""

    def __init__(self, arguments, **others):
        arguments = {key: _activation(value) if key.endswith("activation") else value
                     for key, value in arguments.items() if key not in ("self", "__class__")}
        super().__init__(class_name=type(self).__name__, config=_json.dumps(_settings({**arguments, **others})))


class Lambda(Layer):
    """A function of tensors as a layer, which has no weights of its own.

    >>> pl.layers.Lambda(lambda x: x * 2)(pl.ones(2)).tolist()
    [2.0, 2.0]
    """

    def __init__(self, function, name=None):
        super().__init__(name or "")
        self.function = function

    def call(self, x):
        return self.function(x)


def InputLayer(input_shape=None, shape=None, dtype=None, name=None):
    """Input(), as Keras' Sequential models are begun.

    >>> pl.Sequential([pl.layers.InputLayer(input_shape=(4,)), pl.layers.Dense(2)]).output_shape
    (None, 2)
    """
    return Input(shape if input_shape is None else input_shape, dtype, name or "")


class Dense(_OfLibrary):
    """activation(x w + b) over the last axis."""

    def __init__(self, units, activation="linear", use_bias=True, input_shape=None, kernel_initializer="glorot_uniform",
                 bias_initializer="zeros", name=None, seed=None, kernel_regularizer=None, bias_regularizer=None,
                 activity_regularizer=None, kernel_constraint=None, bias_constraint=None):
        activation = activation or "linear"
        super().__init__(locals())


class Dropout(_OfLibrary):
    """Drops a share of the inputs, in training only."""

    def __init__(self, rate, seed=None, name=None, noise_shape=None, input_shape=None):
        super().__init__(locals())


class SpatialDropout1D(_OfLibrary):
    """Drops whole channels."""

    def __init__(self, rate, seed=None, name=None, input_shape=None):
        super().__init__(locals())


class SpatialDropout2D(_OfLibrary):
    """Drops whole channels."""

    def __init__(self, rate, seed=None, name=None, input_shape=None):
        super().__init__(locals())


class GaussianNoise(_OfLibrary):
    """Adds normal numbers, in training only."""

    def __init__(self, stddev, seed=None, name=None):
        super().__init__(locals())


class GaussianDropout(_OfLibrary):
    """Multiplies with normal numbers around 1, in training only."""

    def __init__(self, rate, seed=None, name=None):
        super().__init__(locals())


class AlphaDropout(_OfLibrary):
    """Beside SELU: mean and variance stay."""

    def __init__(self, rate, seed=None, name=None):
        super().__init__(locals())


class Activation(_OfLibrary):
    """An activation by its name."""

    def __init__(self, activation, name=None, input_shape=None):
        super().__init__(locals())


class Flatten(_OfLibrary):
    """[batch, the rest]."""

    def __init__(self, name=None, input_shape=None):
        super().__init__(locals())


class Reshape(_OfLibrary):
    """To [batch, *target_shape]; one size may be -1."""

    def __init__(self, target_shape, name=None, input_shape=None):
        super().__init__(locals())


class Permute(_OfLibrary):
    """Axes from 1 on in another order."""

    def __init__(self, dims, name=None, input_shape=None):
        super().__init__(locals())


class RepeatVector(_OfLibrary):
    """[batch, features] to [batch, n, features]."""

    def __init__(self, n, name=None, input_shape=None):
        super().__init__(locals())


class Embedding(_OfLibrary):
    """Integers to rows of a table."""

    def __init__(self, input_dim, output_dim, embeddings_initializer="random_uniform", mask_zero=False, input_length=None,
                 name=None, seed=None, embeddings_regularizer=None, embeddings_constraint=None, input_shape=None):
        super().__init__(locals())


class Masking(_OfLibrary):
    """Steps all of whose features have the value are left out."""

    def __init__(self, mask_value=0.0, name=None, input_shape=None):
        super().__init__(locals())


class Conv1D(_OfLibrary):
    """Convolution over sequences [batch, steps, channels]."""

    def __init__(self, filters, kernel_size, strides=1, padding="valid", activation="linear", use_bias=True,
                 input_shape=None, name=None, seed=None, dilation_rate=1, groups=1, kernel_initializer="glorot_uniform",
                 bias_initializer="zeros", kernel_regularizer=None, bias_regularizer=None):
        activation = activation or "linear"
        super().__init__(locals())


class Conv2D(_OfLibrary):
    """Convolution over images [batch, height, width, channels]."""

    def __init__(self, filters, kernel_size, strides=1, padding="valid", activation="linear", use_bias=True,
                 input_shape=None, name=None, seed=None, dilation_rate=1, groups=1, kernel_initializer="glorot_uniform",
                 bias_initializer="zeros", kernel_regularizer=None, bias_regularizer=None):
        activation = activation or "linear"
        super().__init__(locals())


class DepthwiseConv2D(_OfLibrary):
    """A filter for each channel."""

    def __init__(self, kernel_size, strides=1, padding="valid", depth_multiplier=1, activation="linear", use_bias=True,
                 input_shape=None, name=None, seed=None, dilation_rate=1, depthwise_initializer="glorot_uniform",
                 bias_initializer="zeros"):
        activation = activation or "linear"
        super().__init__(locals())


class SeparableConv2D(_OfLibrary):
    """Depthwise, then one by one."""

    def __init__(self, filters, kernel_size, strides=1, padding="valid", depth_multiplier=1, activation="linear",
                 use_bias=True, input_shape=None, name=None, seed=None, dilation_rate=1,
                 depthwise_initializer="glorot_uniform", pointwise_initializer="glorot_uniform",
                 bias_initializer="zeros"):
        activation = activation or "linear"
        super().__init__(locals())


class Conv2DTranspose(_OfLibrary):
    """The gradient of a convolution, as a layer."""

    def __init__(self, filters, kernel_size, strides=1, padding="valid", activation="linear", use_bias=True,
                 input_shape=None, name=None, seed=None, kernel_initializer="glorot_uniform", bias_initializer="zeros"):
        activation = activation or "linear"
        super().__init__(locals())


class ZeroPadding2D(_OfLibrary):
    """Rows above and below, columns left and right."""

    def __init__(self, padding=1, name=None, input_shape=None):
        super().__init__(locals())


class Cropping2D(_OfLibrary):
    """Without rows above and below, columns left and right."""

    def __init__(self, cropping, name=None, input_shape=None):
        super().__init__(locals())


class UpSampling1D(_OfLibrary):
    """Steps repeated."""

    def __init__(self, size=2, name=None):
        super().__init__(locals())


class UpSampling2D(_OfLibrary):
    """Rows and columns repeated."""

    def __init__(self, size=2, name=None):
        super().__init__(locals())


class _Pooling(_OfLibrary):
    def __init__(self, pool_size=2, strides=None, padding="valid", name=None, input_shape=None):
        super().__init__({key: value for key, value in locals().items() if key != "__class__"})


class MaxPooling2D(_Pooling):
    """The largest of each window."""


class AveragePooling2D(_Pooling):
    """The mean of each window."""


class MaxPooling1D(_Pooling):
    """The largest of each window."""


class AveragePooling1D(_Pooling):
    """The mean of each window."""


class _GlobalPooling(_OfLibrary):
    def __init__(self, keepdims=False, name=None, input_shape=None):
        super().__init__({key: value for key, value in locals().items() if key != "__class__"})


class GlobalMaxPooling2D(_GlobalPooling):
    """The largest of each channel."""


class GlobalAveragePooling2D(_GlobalPooling):
    """The mean of each channel."""


class GlobalMaxPooling1D(_GlobalPooling):
    """The largest of each channel."""


class GlobalAveragePooling1D(_GlobalPooling):
    """The mean of each channel over the steps that are not masked."""


class BatchNormalization(_OfLibrary):
    """Mean 0 and variance 1 of each channel over the batch; in use, by moving averages."""

    def __init__(self, axis=-1, momentum=0.99, epsilon=1e-3, center=True, scale=True, name=None, input_shape=None,
                 beta_initializer="zeros", gamma_initializer="ones", moving_mean_initializer="zeros",
                 moving_variance_initializer="ones"):
        super().__init__(locals())


class LayerNormalization(_OfLibrary):
    """Mean 0 and variance 1 of each example."""

    def __init__(self, axis=-1, epsilon=1e-3, center=True, scale=True, name=None, input_shape=None,
                 beta_initializer="zeros", gamma_initializer="ones"):
        super().__init__(locals())


class _Recurrent(_OfLibrary):
    def __init__(self, units, activation="tanh", recurrent_activation="sigmoid", return_sequences=False,
                 return_state=False, go_backwards=False, stateful=False, input_shape=None, name=None, seed=None,
                 use_bias=True, dropout=0.0, recurrent_dropout=0.0, kernel_initializer="glorot_uniform",
                 recurrent_initializer="orthogonal", bias_initializer="zeros", **others):
        given = {key: value for key, value in locals().items() if key not in ("others", "__class__")}
        if type(self).__name__ == "SimpleRNN":
            del given["recurrent_activation"]
        super().__init__(given, **others)


class SimpleRNN(_Recurrent):
    """x is [batch, time, features]."""


class LSTM(_Recurrent):
    """x is [batch, time, features]; with return_state it gives [output, h, c]."""


class GRU(_Recurrent):
    """x is [batch, time, features]; with return_state it gives [output, h]."""


def _inner(layer):
    return {"class_name": _layer_class(layer), "config": layer.get_config()}


def _layer_class(layer):
    """The name that files have for the layer's class."""
    return type(layer).__name__


class Bidirectional(_OfLibrary):
    """A layer like the given one in each direction."""

    def __init__(self, layer, merge_mode="concat", name=None, input_shape=None):
        layer = _inner(layer)
        super().__init__(locals())


class TimeDistributed(_OfLibrary):
    """The layer for each step."""

    def __init__(self, layer, name=None, input_shape=None):
        layer = _inner(layer)
        super().__init__(locals())


class MultiHeadAttention(_OfLibrary):
    """Queries look up values by keys, several times side by side: call it with [query, value] or [query, value, key]."""

    def __init__(self, num_heads, key_dim, value_dim=None, use_bias=True, use_causal_mask=None, name=None, seed=None,
                 kernel_initializer="glorot_uniform", bias_initializer="zeros"):
        super().__init__(locals())


class _Plain(_OfLibrary):
    def __init__(self, name=None, input_shape=None):
        super().__init__({key: value for key, value in locals().items() if key != "__class__"})


class Add(_Plain):
    """The sum of its inputs."""


class Subtract(_Plain):
    """The difference of its two inputs."""


class Multiply(_Plain):
    """The product of its inputs."""


class Average(_Plain):
    """The mean of its inputs."""


class Maximum(_Plain):
    """The largest of its inputs, element by element."""


class Minimum(_Plain):
    """The smallest of its inputs, element by element."""


class Concatenate(_OfLibrary):
    """Its inputs one after the other along an axis."""

    def __init__(self, axis=-1, name=None):
        super().__init__(locals())


class Dot(_OfLibrary):
    """Products of its two inputs, summed over an axis of each."""

    def __init__(self, axes, normalize=False, name=None):
        super().__init__(locals())


class ReLU(_OfLibrary):
    """max(x, 0), with a largest value, a slope and a threshold if wanted."""

    def __init__(self, max_value=None, negative_slope=0.0, threshold=0.0, name=None):
        super().__init__(locals())


class LeakyReLU(_OfLibrary):
    """x > 0 ? x : alpha x."""

    def __init__(self, alpha=0.3, name=None, input_shape=None):
        super().__init__(locals())


class PReLU(_Plain):
    """Leaky with slopes that are learned."""


class ELU(_OfLibrary):
    """x > 0 ? x : alpha (exp(x) - 1)."""

    def __init__(self, alpha=1.0, name=None, input_shape=None):
        super().__init__(locals())


class ThresholdedReLU(_OfLibrary):
    """x > theta ? x : 0."""

    def __init__(self, theta=1.0, name=None, input_shape=None):
        super().__init__(locals())


class Softmax(_OfLibrary):
    """Shares of 1 along an axis."""

    def __init__(self, axis=-1, name=None, input_shape=None):
        super().__init__(locals())


def _operator(name, function, merge=None):
    """An operator of places in a model: residual = x + y."""

    def of_places(self, other):
        if isinstance(other, LayerOutput):
            return merge()([self, other]) if merge else Lambda(lambda both: function(both[0], both[1]))([self, other])
        if isinstance(other, (int, float)):
            return Lambda(lambda x: function(x, other))(self)
        return NotImplemented

    of_places.__name__ = name
    setattr(LayerOutput, name, of_places)


_operator("__add__", _op.add, lambda: Add())
_operator("__radd__", lambda a, b: b + a)
_operator("__sub__", _op.sub, lambda: Subtract())
_operator("__rsub__", lambda a, b: b - a)
_operator("__mul__", _op.mul, lambda: Multiply())
_operator("__rmul__", lambda a, b: b * a)
_operator("__truediv__", _op.truediv)
setattr(LayerOutput, "__neg__", lambda self: Lambda(lambda x: -x)(self))

_document_layers(globals())

__all__ = ["Activation", "Add", "AlphaDropout", "Average", "AveragePooling1D", "AveragePooling2D", "BatchNormalization", "Bidirectional",
           "Concatenate", "Conv1D", "Conv2D", "Conv2DTranspose", "Cropping2D", "Dense", "DepthwiseConv2D", "Dot", "Dropout",
           "ELU", "Embedding", "Flatten", "GRU", "GaussianDropout", "GaussianNoise", "GlobalAveragePooling1D",
           "GlobalAveragePooling2D", "GlobalMaxPooling1D", "GlobalMaxPooling2D", "Input", "InputLayer", "Lambda", "LSTM", "Layer",
           "LayerNormalization", "LeakyReLU", "Masking", "MaxPooling1D", "MaxPooling2D", "Maximum", "Minimum",
           "MultiHeadAttention", "Multiply", "PReLU", "Permute", "ReLU", "RepeatVector", "Reshape", "SeparableConv2D",
           "SimpleRNN", "Softmax", "SpatialDropout1D", "SpatialDropout2D", "Subtract", "ThresholdedReLU", "TimeDistributed",
           "UpSampling1D", "UpSampling2D", "ZeroPadding2D", "register_layer"]
