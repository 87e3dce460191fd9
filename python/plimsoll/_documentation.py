"""The documentation of the extension: a text and an example for each function and class, which the tests run.

The extension asks for the texts of its functions when it is loaded; classes get theirs afterwards (document_classes).
A name, a colon and a sentence, then an example; a blank line between two.
"""

_TEXTS = r'''
config.reset_for_testing: Forgets devices and settings, as if the process had just begun; refused while tensors live.
    >>> pl.config.reset_for_testing.__name__
    'reset_for_testing'

nextafter: The number next to each of a, on the way to b.
    >>> pl.nextafter(1.0, 2.0).item() - 1 == 2.0 ** -23
    True

copysign: a with the signs of b.
    >>> pl.copysign([1.0, -2.0], -0.0).tolist()
    [-1.0, -2.0]

signbit: Whether the sign bit is set, for zeros and NaNs too.
    >>> pl.signbit([1.0, -0.0]).tolist()
    [False, True]

cumsum: Running sums along an axis; of all elements in a row when none is given. Integers add up in int64.
    >>> pl.cumsum([1, 2, 3]).tolist(), pl.cumsum([1, 2, 3], exclusive=True).tolist()
    ([1, 3, 6], [0, 1, 3])

cumprod: Running products along an axis; of all elements in a row when none is given. They double up: a product of n takes log2(n) passes.
    >>> pl.cumprod([1, 2, 3, 4]).tolist(), pl.cumprod([1, 2, 3], reverse=True).tolist()
    ([1, 2, 6, 24], [6, 6, 3])

dtype: The dtype of that name, or NumPy's.
    >>> pl.dtype("f32")
    plimsoll.float32

parse_bytes: Bytes of a size such as "64MiB".
    >>> pl.parse_bytes("1.5 KiB")
    1536

format_bytes: Text for a number of bytes.
    >>> pl.format_bytes(24 << 20)
    '24.0 MiB'

config.set_logical_device_configuration: Divides a device: as many logical ones as there are entries, each with its own limit; before the first tensor.
    >>> import subprocess, sys
    >>> program = """
    ... import plimsoll as pl
    ... cpu = pl.config.list_physical_devices("CPU")[0]
    ... pl.config.set_logical_device_configuration(cpu, [pl.config.LogicalDeviceConfiguration("64MiB")])
    ... print(pl.config.list_logical_devices()[0].memory_limit)
    ... """
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    '67108864\n'

config.set_memory_growth: Pages are taken as they are needed, instead of all at once; before the first tensor.
    >>> import subprocess, sys
    >>> program = """
    ... import plimsoll as pl
    ... cpu = pl.config.list_physical_devices("CPU")[0]
    ... pl.config.set_memory_growth(cpu, True)
    ... print(pl.config.get_memory_growth(cpu))
    ... """
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    'True\n'

config.set_memory_fraction: The device's limit as a share of its memory; before the first tensor.
    >>> import subprocess, sys
    >>> program = """
    ... import plimsoll as pl
    ... cpu = pl.config.list_physical_devices("CPU")[0]
    ... pl.config.set_memory_fraction(cpu, 0.5)
    ... print(pl.config.get_memory_fraction(cpu))
    ... """
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    '0.5\n'

logical_not: The opposite of each truth.
    >>> pl.logical_not([True, False]).tolist()
    [False, True]

is_nan: Which elements are no numbers.
    >>> pl.is_nan([1.0, float("nan")]).tolist()
    [False, True]

is_inf: Which elements are infinite.
    >>> pl.is_inf([1.0, float("-inf")]).tolist()
    [False, True]

is_finite: Which elements are numbers that are not infinite.
    >>> pl.is_finite([1.0, float("inf"), float("nan")]).tolist()
    [True, False, False]

negative: -x.
    >>> pl.negative([1, -2]).tolist()
    [-1, 2]

abs: Each element without its sign.
    >>> pl.abs([-1, 2]).tolist()
    [1, 2]

sign: -1, 0 or 1.
    >>> pl.sign([-3.0, 0.0, 2.0]).tolist()
    [-1.0, 0.0, 1.0]

floor: The largest whole number that is not above.
    >>> pl.floor([1.5, -1.5]).tolist()
    [1.0, -2.0]

ceil: The smallest whole number that is not below.
    >>> pl.ceil([1.5, -1.5]).tolist()
    [2.0, -1.0]

round: The nearest whole number; of two, the even one.
    >>> pl.round([0.5, 1.5, 2.4]).tolist()
    [0.0, 2.0, 2.0]

square: x times x.
    >>> pl.square([3, -2]).tolist()
    [9, 4]

sqrt: The square root; NaN below 0.
    >>> pl.sqrt([4.0, 9.0]).tolist()
    [2.0, 3.0]

rsqrt: 1 / sqrt(x).
    >>> pl.rsqrt([4.0, 0.25]).tolist()
    [0.5, 2.0]

reciprocal: 1 / x.
    >>> pl.reciprocal([2.0, -4.0]).tolist()
    [0.5, -0.25]

exp: e to the x.
    >>> pl.exp([0.0]).tolist()
    [1.0]

expm1: exp(x) - 1, exact near 0.
    >>> pl.expm1([0.0]).tolist()
    [0.0]

log: The natural logarithm.
    >>> pl.log([1.0, 0.0]).tolist()
    [0.0, -inf]

log1p: log(1 + x), exact near 0.
    >>> pl.log1p([0.0]).tolist()
    [0.0]

sin: The sine of angles in radians.
    >>> pl.sin([0.0]).tolist()
    [0.0]

cos: The cosine of angles in radians.
    >>> pl.cos([0.0]).tolist()
    [1.0]

tan: The tangent of angles in radians.
    >>> pl.tan([0.0]).tolist()
    [0.0]

asin: The angle of a sine.
    >>> pl.asin([0.0]).tolist()
    [0.0]

acos: The angle of a cosine.
    >>> pl.acos([1.0]).tolist()
    [0.0]

atan: The angle of a tangent.
    >>> pl.atan([0.0]).tolist()
    [0.0]

sinh: The hyperbolic sine.
    >>> pl.sinh([0.0]).tolist()
    [0.0]

cosh: The hyperbolic cosine.
    >>> pl.cosh([0.0]).tolist()
    [1.0]

tanh: The hyperbolic tangent: between -1 and 1.
    >>> pl.tanh([0.0, 100.0]).tolist()
    [0.0, 1.0]

asinh: The inverse of sinh.
    >>> pl.asinh([0.0]).tolist()
    [0.0]

acosh: The inverse of cosh.
    >>> pl.acosh([1.0]).tolist()
    [0.0]

atanh: The inverse of tanh.
    >>> pl.atanh([0.0]).tolist()
    [0.0]

erf: The error function of the normal distribution.
    >>> pl.erf([0.0, 10.0]).tolist()
    [0.0, 1.0]

relu: max(x, 0).
    >>> pl.relu([-1.0, 2.0]).tolist()
    [0.0, 2.0]

relu6: Between 0 and 6.
    >>> pl.relu6([-1.0, 2.0, 8.0]).tolist()
    [0.0, 2.0, 6.0]

elu: x above 0, exp(x) - 1 below.
    >>> pl.elu([0.0, 2.0]).tolist()
    [0.0, 2.0]

selu: elu() scaled so that means and variances stay through layers.
    >>> pl.selu([0.0]).tolist()
    [0.0]

gelu: x times the share of the normal distribution below x.
    >>> pl.gelu([0.0]).tolist()
    [0.0]

gelu_tanh: gelu() by a formula with tanh, as older models have it.
    >>> pl.gelu_tanh([0.0]).tolist()
    [0.0]

sigmoid: 1 / (1 + exp(-x)): between 0 and 1.
    >>> pl.sigmoid([0.0, 100.0]).tolist()
    [0.5, 1.0]

hard_sigmoid: sigmoid() in three straight pieces.
    >>> pl.hard_sigmoid([-9.0, 0.0, 9.0]).tolist()
    [0.0, 0.5, 1.0]

softplus: log(1 + exp(x)), without overflow.
    >>> pl.softplus([1000.0]).tolist()
    [1000.0]

softsign: x / (1 + abs(x)).
    >>> pl.softsign([1.0, -3.0]).tolist()
    [0.5, -0.75]

swish: x times sigmoid(x).
    >>> pl.swish([0.0]).tolist()
    [0.0]

leaky_relu: x above 0, alpha times x below.
    >>> pl.leaky_relu([-2.0, 2.0], alpha=0.5).tolist()
    [-1.0, 2.0]

add: a + b, with NumPy's broadcasting.
    >>> pl.add([1, 2], 10).tolist()
    [11, 12]

subtract: a - b, with NumPy's broadcasting.
    >>> pl.subtract([[1], [2]], [1, 2]).tolist()
    [[0, -1], [1, 0]]

multiply: a * b, with NumPy's broadcasting.
    >>> pl.multiply([1, 2], 3).tolist()
    [3, 6]

divide: a / b, with NumPy's broadcasting; integers give floats, as in Python.
    >>> pl.divide([1, 3], 2).tolist()
    [0.5, 1.5]

floor_divide: a // b: the quotient rounded down.
    >>> pl.floor_divide([7, -7], 2).tolist()
    [3, -4]

modulo: a % b: what floor_divide() leaves, with the sign of b.
    >>> pl.modulo([7, -7], 3).tolist()
    [1, 2]

power: a ** b.
    >>> pl.power([2.0, 3.0], 2).tolist()
    [4.0, 9.0]

maximum: The larger of two, element by element.
    >>> pl.maximum([1, 5], 3).tolist()
    [3, 5]

minimum: The smaller of two, element by element.
    >>> pl.minimum([1, 5], 3).tolist()
    [1, 3]

squared_difference: (a - b) squared.
    >>> pl.squared_difference([1.0, 5.0], 3).tolist()
    [4.0, 4.0]

divide_no_nan: a / b, and 0 where b is 0.
    >>> pl.divide_no_nan([1.0, 2.0], [0.0, 4.0]).tolist()
    [0.0, 0.5]

xdivy: a / b, and 0 where a is 0.
    >>> pl.xdivy([0.0, 2.0], [0.0, 4.0]).tolist()
    [0.0, 0.5]

xlogy: a log(b), and 0 where a is 0.
    >>> pl.xlogy([0.0, 2.0], [0.0, 1.0]).tolist()
    [0.0, 0.0]

atan2: The angle of the point (b, a).
    >>> pl.atan2([0.0], [1.0]).tolist()
    [0.0]

equal: a == b, element by element.
    >>> pl.equal([1, 2], [1, 3]).tolist()
    [True, False]

not_equal: a != b, element by element.
    >>> pl.not_equal([1, 2], [1, 3]).tolist()
    [False, True]

less: a < b, element by element.
    >>> pl.less([1, 2], 2).tolist()
    [True, False]

less_equal: a <= b, element by element.
    >>> pl.less_equal([1, 2], 1).tolist()
    [True, False]

greater: a > b, element by element.
    >>> pl.greater([1, 2], 1).tolist()
    [False, True]

greater_equal: a >= b, element by element.
    >>> pl.greater_equal([1, 2], 2).tolist()
    [False, True]

logical_and: Whether both are true.
    >>> pl.logical_and([True, True], [True, False]).tolist()
    [True, False]

logical_or: Whether one of the two is true.
    >>> pl.logical_or([True, False], False).tolist()
    [True, False]

logical_xor: Whether one of the two is true, and the other is not.
    >>> pl.logical_xor([True, True], [True, False]).tolist()
    [False, True]

where: x where the condition holds, else y.
    >>> pl.where([True, False], [1, 2], 0).tolist()
    [1, 0]

cast: The same numbers in another dtype.
    >>> pl.cast([1.7, -1.7], "int32").tolist()
    [1, -1]

clip: Elements below min become min, those above max become max.
    >>> pl.clip([-1, 2, 9], 0, 5).tolist()
    [0, 2, 5]

zeros: Zeros of a shape.
    >>> pl.zeros((2, 3)).shape
    (2, 3)

ones: Ones of a shape.
    >>> pl.ones(2).tolist()
    [1.0, 1.0]

full: One value everywhere.
    >>> pl.full((2,), 7).tolist()
    [7, 7]

arange: Numbers from start on, by steps, before stop; from 0 on when only one is given.
    >>> pl.arange(3).tolist(), pl.arange(1, 10, 4).tolist()
    ([0, 1, 2], [1, 5, 9])

linspace: num numbers at equal distances from start to stop, with both; without stop when endpoint is False.
    >>> pl.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]

eye: Ones on the diagonal of a matrix of zeros.
    >>> pl.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]

constant: A tensor of a value, in a shape if one is given.
    >>> pl.constant(3.0, shape=(2,)).tolist()
    [3.0, 3.0]

random_uniform: Numbers of [low, high), all as likely; with a seed always the same ones.
    >>> pl.random_uniform((3,), 0, 10, seed=1).shape
    (3,)

random_normal: Normal numbers; with a seed always the same ones.
    >>> (pl.random_normal((3,), seed=1) == pl.random_normal((3,), seed=1)).tolist()
    [True, True, True]

truncated_normal: Normal numbers, drawn again while they are more than two deviations away.
    >>> pl.abs(pl.truncated_normal((100,), seed=1)).max().item() <= 2
    True

random_bernoulli: Ones with the probability given, else zeros.
    >>> pl.random_bernoulli((4,), 1.0).tolist()
    [1.0, 1.0, 1.0, 1.0]

one_hot: A one at the position of each index, zeros elsewhere.
    >>> pl.one_hot([1, 0], 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]

from_dlpack: A tensor on the memory of another library's array, which must not change while the tensor lives.
    >>> pl.from_dlpack(pl.ones(2)).tolist()
    [1.0, 1.0]

sum: The sum over the axes; of all elements when none is given. Integers add up in int64.
    >>> pl.sum([[1, 2], [3, 4]], axis=0).tolist()
    [4, 6]

prod: The product over the axes; of all elements when none is given.
    >>> pl.prod([2, 3, 4]).item()
    24

mean: The mean over the axes.
    >>> pl.mean([1, 2]).item()
    1.5

max: The largest element over the axes.
    >>> pl.max([[1, 5], [3, 2]], axis=1).tolist()
    [5, 3]

min: The smallest element over the axes.
    >>> pl.min([[1, 5], [3, 2]], axis=1).tolist()
    [1, 2]

any: Whether one is true.
    >>> pl.any([False, True]).item()
    True

all: Whether all are true.
    >>> pl.all([[False, True], [True, True]], axis=1).tolist()
    [False, True]

logsumexp: The logarithm of the sum of exponentials, without overflow.
    >>> pl.logsumexp([1000.0]).item()
    1000.0

var: The mean square of what elements differ from their mean; divided by correction fewer.
    >>> pl.var([1.0, 3.0]).item()
    1.0

std: The root of var().
    >>> pl.std([1.0, 3.0]).item()
    1.0

argmax: The position of the largest element, the first of equal ones. Without an axis, in the flattened tensor.
    >>> pl.argmax([[1, 5], [3, 2]], axis=1).tolist()
    [1, 0]

argmin: The position of the smallest element, the first of equal ones. Without an axis, in the flattened tensor.
    >>> pl.argmin([4, 2, 3]).item()
    1

norm: The norm over the axes: of order 2 the root of the sum of squares, of order 1 the sum without signs.
    >>> pl.norm([3.0, 4.0]).item(), pl.norm([3.0, -4.0], ord=1).item()
    (5.0, 7.0)

global_norm: The norm of several tensors together.
    >>> pl.global_norm([[3.0], [4.0]]).item()
    5.0

clip_by_global_norm: The tensors scaled so that their norm together is not above the limit.
    >>> tensors, norm = pl.clip_by_global_norm([[3.0], [4.0]], 1.0)
    >>> norm.item()
    5.0

confusion_matrix: How often each class (column) was predicted for each label (row).
    >>> pl.confusion_matrix([0, 1, 1], [0, 1, 0], num_classes=2).tolist()
    [[1, 0], [1, 1]]

sort: Elements in order along an axis; NaN last.
    >>> pl.sort([3, 1, 2]).tolist(), pl.sort([3, 1, 2], descending=True).tolist()
    ([1, 2, 3], [3, 2, 1])

argsort: The positions of elements in order; equal ones keep theirs.
    >>> pl.argsort([3, 1, 2]).tolist()
    [1, 2, 0]

top_k: The k largest of each row, and where they are.
    >>> values, indices = pl.top_k([1, 5, 3], k=2)
    >>> values.tolist(), indices.tolist()
    ([5, 3], [1, 2])

softmax: Shares of 1 along an axis: exp(x) divided by its sum.
    >>> pl.softmax([0.0, 0.0]).tolist()
    [0.5, 0.5]

log_softmax: The logarithm of softmax(), without overflow.
    >>> pl.log_softmax([1000.0]).tolist()
    [0.0]

broadcast_to: Repeated to a shape, as operators do.
    >>> pl.broadcast_to([1, 2], (2, 2)).tolist()
    [[1, 2], [1, 2]]

concat: One after the other along an axis.
    >>> pl.concat([[1, 2], [3]]).tolist()
    [1, 2, 3]

stack: Side by side along a new axis.
    >>> pl.stack([[1, 2], [3, 4]], axis=1).tolist()
    [[1, 3], [2, 4]]

unstack: The parts along an axis, which is gone.
    >>> [t.tolist() for t in pl.unstack([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]

split: Equal parts, or parts of these sizes.
    >>> [t.tolist() for t in pl.split([1, 2, 3], [1, 2])]
    [[1], [2, 3]]

reshape: The same elements in another shape; one size may be -1.
    >>> pl.reshape([1, 2, 3, 4], (2, -1)).tolist()
    [[1, 2], [3, 4]]

transpose: The axes in that order; in reverse when none is given.
    >>> pl.transpose([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]

squeeze: Without axes of size 1: all, or those given.
    >>> pl.squeeze([[1, 2]]).shape
    (2,)

expand_dims: With a new axis of size 1.
    >>> pl.expand_dims([1, 2], axis=1).shape
    (2, 1)

flip: Backwards along the axes; along all when none is given.
    >>> pl.flip([1, 2, 3]).tolist()
    [3, 2, 1]

roll: Along an axis by so many places; what leaves comes in on the other side.
    >>> pl.roll([1, 2, 3], 1).tolist()
    [3, 1, 2]

pad: With so many elements before and after each axis: a value, or mirrored (mode "reflect", "symmetric").
    >>> pl.pad([1, 2], [(1, 2)]).tolist()
    [0, 1, 2, 0, 0]

tile: The whole repeated along each axis.
    >>> pl.tile([1, 2], 2).tolist()
    [1, 2, 1, 2]

repeat: Each element, or each part of an axis, repeated.
    >>> pl.repeat([1, 2], 2).tolist()
    [1, 1, 2, 2]

gather: Positions of one axis, chosen and repeated.
    >>> pl.gather([10, 20, 30], [2, 0, 2]).tolist()
    [30, 10, 30]

take: Positions of one axis, chosen and repeated.
    >>> pl.take([[1, 2], [3, 4]], [1], axis=1).tolist()
    [[2], [4]]

take_along_axis: The element at each index along an axis; with the result of argsort() it sorts.
    >>> pl.take_along_axis([[3, 1]], pl.argsort([[3, 1]])).tolist()
    [[1, 3]]

boolean_mask: The elements, or parts of the first axes, where the mask is true.
    >>> pl.boolean_mask([1, 2, 3], [True, False, True]).tolist()
    [1, 3]

where_true: The positions where it is true, a row for each.
    >>> pl.where_true([[True, False], [False, True]]).tolist()
    [[0, 0], [1, 1]]

scatter: Zeros of a shape with the updates added at these positions.
    >>> pl.scatter([1, 3], [5, 7], (4,)).tolist()
    [0, 5, 0, 7]

scatter_add: x with the updates added at these positions.
    >>> pl.scatter_add([1, 1, 1], [0, 0], [5, 7]).tolist()
    [13, 1, 1]

scatter_update: x with the updates put at these positions.
    >>> pl.scatter_update([1, 1, 1], [2], [9]).tolist()
    [1, 1, 9]

matmul: Products of matrices, and of batches of them.
    >>> pl.matmul(pl.ones((2, 3)), pl.ones((3, 4))).shape
    (2, 4)

dot: The sum of products of two vectors.
    >>> pl.dot([1.0, 2.0], [3.0, 4.0]).item()
    11.0

outer: All products of two vectors, as a matrix.
    >>> pl.outer([1, 2], [3, 4]).tolist()
    [[3, 4], [6, 8]]

einsum: Sums of products of one or two tensors, by the letters of their axes.
    >>> pl.einsum("ij,jk->ik", pl.ones((2, 3)), pl.ones((3, 4))).shape
    (2, 4)

conv2d: A convolution of images [batch, height, width, channels] with filters [height, width, in, out].
    >>> pl.conv2d(pl.ones((1, 5, 5, 2)), pl.ones((3, 3, 2, 4))).shape
    (1, 3, 3, 4)

max_pool2d: The largest of each window of images [batch, height, width, channels].
    >>> pl.max_pool2d(pl.ones((1, 4, 4, 2)), size=2).shape
    (1, 2, 2, 2)

avg_pool2d: The mean of each window of images [batch, height, width, channels].
    >>> pl.avg_pool2d(pl.ones((1, 4, 4, 2)), size=2).shape
    (1, 2, 2, 2)

softmax_cross_entropy_with_logits: A loss for each example: labels are shares of classes, logits what softmax() would get.
    >>> pl.softmax_cross_entropy_with_logits([[1.0, 0.0]], [[100.0, 0.0]]).tolist()
    [0.0]

sparse_softmax_cross_entropy_with_logits: A loss for each example: labels are numbers of classes.
    >>> pl.sparse_softmax_cross_entropy_with_logits([0], [[100.0, 0.0]]).tolist()
    [0.0]

sigmoid_cross_entropy_with_logits: A loss for each element: labels are 0 or 1, logits what sigmoid() would get.
    >>> pl.sigmoid_cross_entropy_with_logits([1.0], [1000.0]).tolist()
    [0.0]

sparse_matmul: A product of two sparse tensors, or of a sparse and a dense one.
    >>> s = pl.SparseTensor([[0, 1]], [2.0], (2, 2))
    >>> pl.sparse_matmul(s, pl.ones((2, 1))).tolist()
    [[2.0], [0.0]]

sparse_softmax: Softmax over the stored entries of each row.
    >>> s = pl.SparseTensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3))
    >>> pl.sparse_softmax(s).to_dense().tolist()
    [[0.5, 0.0, 0.5]]

keep: No scope releases the tensors inside the value from now on; dispose() does. Returns it.
    >>> with pl.tidy():
    ...     x = pl.keep(pl.ones(3))
    >>> x.sum().item()
    3.0

dispose: Gives back the memory of every tensor inside: of a tensor, a list, a dict, ...
    >>> x = pl.ones(3)
    >>> pl.dispose([x])
    >>> x.is_disposed
    True

device: A scope: tensors made inside are on that device. A soft one is for graphs: without such a device nodes are placed elsewhere.
    >>> with pl.device("CPU:0"):
    ...     x = pl.ones(3)
    >>> x.device
    'CPU:0'

name_scope: A scope: everything made inside carries the name in every report.
    >>> with pl.name_scope("encoder"):
    ...     x = pl.keep(pl.ones(3))
    >>> [t.scope for t in pl.live_tensors() if t.id == x.id]
    ['encoder']

no_grad: A scope in which tapes see nothing.
    >>> x = pl.Variable(2.0)
    >>> with pl.GradientTape() as tape:
    ...     with pl.no_grad():
    ...         y = x * x
    >>> tape.gradient(y, x) is None
    True

memory_stats: The state of a device's memory now, and its peaks.
    >>> x = pl.ones(1000)
    >>> pl.memory_stats().bytes_in_use >= 4000
    True

reset_memory_stats: Resets peaks to what is used now.
    >>> pl.reset_memory_stats()
    >>> stats = pl.memory_stats()
    >>> stats.peak_bytes_in_use == stats.bytes_in_use
    True

trim: Gives every free page back to the system; the bytes that were given.
    >>> pl.trim() >= 0
    True

collect_garbage: Lets deferred releases take effect and empties caches.
    >>> pl.collect_garbage()

live_tensors: Every tensor that is alive.
    >>> x = pl.ones(3)
    >>> any(t.id == x.id for t in pl.live_tensors())
    True

who_holds: What keeps a tensor and its bytes alive: handles, views, tapes, scopes.
    >>> x = pl.ones(3)
    >>> view = memoryview(x)
    >>> "1 data view" in str(pl.who_holds(x))
    True

on_memory_alert: Calls back when a device's memory passes that share of its limit, while what it returns lives.
    >>> handle = pl.on_memory_alert(0.9, lambda alert: print(alert))
    >>> del handle

record: A recording of what happens in memory, for `with`; `plimsoll report` and pl.Report show it.
    >>> with pl.record("run.trace"):
    ...     x = pl.ones(1000) * 2
    >>> pl.Report("run.trace").findings[0]["level"]
    'note'

trace_step: A step begins, in recordings.
    >>> pl.trace_step(1)

trace_phase: A phase begins, in recordings.
    >>> pl.trace_phase("forward")

export_trace: A recording as a file for other viewers: pytorch, perfetto, pprof or heaptrack.
    >>> with pl.record("run.trace"):
    ...     x = pl.ones(1000) * 2
    >>> pl.export_trace("run.trace", "run.json", format="perfetto")

process_memory: The memory of this process as the system counts it, in bytes.
    >>> pl.process_memory()["resident"] > 0
    True

resident_parts: What the resident bytes of this process consist of, as a table.
    >>> pl.resident_parts().startswith("resident")
    True

custom_gradient: A function with your own gradient: backward(gradient, *inputs) returns one for each input.
    >>> x = pl.Variable(2.0)
    >>> with pl.GradientTape() as tape:
    ...     y = pl.custom_gradient([x], lambda v: v * v, lambda g, v: [g * 10])
    >>> tape.gradient(y, x).item()
    10.0

stop_gradient: The same value, which tapes take for a constant.
    >>> x = pl.Variable(2.0)
    >>> with pl.GradientTape() as tape:
    ...     y = x * pl.stop_gradient(x)
    >>> tape.gradient(y, x).item()
    2.0

default_graph: The graph that is open: of the innermost `with pl.Graph():`, or the one of the thread.
    >>> with pl.Graph():
    ...     x = pl.placeholder("float32")
    ...     graph = pl.default_graph()
    >>> with pl.Session(graph) as session:
    ...     print(session.run(x, {x: 3.0}).item())
    3.0

reset_default_graph: An empty default graph from now on.
    >>> pl.reset_default_graph()

placeholder: A value that each run of a graph is fed with; sizes that are None fit any.
    >>> with pl.Graph() as g:
    ...     x = pl.placeholder("float32", (None, 2))
    ...     y = x.sum(axis=1)
    >>> with pl.Session(g) as session:
    ...     print(session.run(y, {x: [[1, 2], [3, 4]]}).tolist())
    [3.0, 7.0]

group: A node that runs all of these.
    >>> with pl.Graph() as g:
    ...     both = pl.group(pl.constant(1.0), pl.constant(2.0))

gradients: Gradients as nodes of the graph.
    >>> with pl.Graph() as g:
    ...     x = pl.placeholder("float32")
    ...     slope = pl.gradients(x * x, [x])[0]
    >>> with pl.Session(g) as session:
    ...     print(session.run(slope, {x: 3.0}).item())
    6.0

global_variables_initializer: For session.run(): gives every variable its initial value.
    >>> with pl.Graph() as g:
    ...     w = pl.Variable(3.0)
    ...     start = pl.global_variables_initializer()
    >>> with pl.Session(g) as session:
    ...     session.run(start)
    ...     print(session.run(w).item())
    3.0

latest_checkpoint: The path of the newest checkpoint in a folder; None without one.
    >>> pl.latest_checkpoint(".") is None
    True

cond: One of the two branches, on a value that a graph computes.
    >>> f = pl.function(lambda x: pl.cond(x.sum() > 0, lambda: x * 2, lambda: -x))
    >>> f(pl.asarray([1.0])).tolist(), f(pl.asarray([-1.0])).tolist()
    ([2.0], [1.0])

while_loop: A loop on values that a graph computes: body(state) as long as cond(state) holds.
    >>> f = pl.function(lambda x: pl.while_loop(lambda v: v < 100, lambda v: v * 2, x))
    >>> f(pl.asarray(3.0)).item()
    192.0

timeseries_windows: Windows of a series and what comes after each: a Dataset of look_back steps and the horizon's.
    >>> windows = pl.timeseries_windows([1.0, 2.0, 3.0, 4.0], look_back=2)
    >>> x, y = next(iter(windows))
    >>> x.tolist(), y.tolist()
    ([[1.0], [2.0]], [3.0])

Input: The input of a model under construction; the shape excludes the batch.
    >>> x = pl.Input((4,))
    >>> model = pl.Model(x, pl.layers.Dense(2)(x))
    >>> model.output_shape
    (None, 2)

register_layer: From now on files may have layers of this class, made with what get_config() gave. Also as a decorator.
    >>> @pl.register_layer
    ... class Half(pl.layers.Layer):
    ...     def call(self, x):
    ...         return x * 0.5

save_safetensors: A dict or list of tensors, nested as it may be, in a .safetensors file.
    >>> pl.save_safetensors("w.safetensors", {"w": pl.ones(2)})

load_safetensors: The tensors of a .safetensors file, by name.
    >>> pl.save_safetensors("w.safetensors", {"w": pl.ones(2)})
    >>> pl.load_safetensors("w.safetensors")["w"].tolist()
    [1.0, 1.0]

save_npz: A dict or list of tensors in an .npz file of NumPy.
    >>> pl.save_npz("w.npz", {"w": pl.ones(2)})

load_npz: The arrays of an .npz file of NumPy, by name.
    >>> pl.save_npz("w.npz", {"w": pl.ones(2)})
    >>> pl.load_npz("w.npz")["w"].tolist()
    [1.0, 1.0]

load_json_tensors: The tensors of a JSON file: numbers and nested lists of them, by name.
    >>> import json
    >>> with open("w.json", "w") as file:
    ...     json.dump([{"shape": [2], "data": [1, 2]}], file)
    >>> [t.tolist() for t in pl.load_json_tensors("w.json")]
    [[1.0, 2.0]]

save_layers_model: model.json and its weights, for TensorFlow.js and for load_layers_model().
    >>> model = pl.Sequential([pl.layers.Dense(2, input_shape=(3,))])
    >>> pl.save_layers_model(model, "model")

load_layers_model: The model of a model.json, as TensorFlow.js and save() write it.
    >>> pl.Sequential([pl.layers.Dense(2, input_shape=(3,))]).save("model")
    >>> pl.load_layers_model("model/model.json").output_shape
    (None, 2)

save_keras: A .keras file, which Keras 3 reads.
    >>> model = pl.Sequential([pl.layers.Dense(2, input_shape=(3,))])
    >>> pl.save_keras(model, "m.keras")

load_keras: The model of a .keras or .h5 file, compiled and trained as far as it was there.
    >>> pl.Sequential([pl.layers.Dense(2, input_shape=(3,))]).save("m.keras")
    >>> pl.load_keras("m.keras").output_shape
    (None, 2)

load_onnx: An ONNX file as a model that predicts, trains and forecasts as any other.
    >>> try:
    ...     pl.load_onnx("missing.onnx")
    ... except FileNotFoundError:
    ...     print("no such file")
    no such file

config.list_physical_devices: The devices of this machine; of a kind ("CPU") if one is given.
    >>> pl.config.list_physical_devices("CPU")[0].name
    'CPU:0'

config.list_logical_devices: The devices that tensors go to: parts of physical ones where limits were set.
    >>> pl.config.list_logical_devices()[0].name
    'CPU:0'

config.get_visible_devices: The devices that may be used.
    >>> len(pl.config.get_visible_devices()) >= 1
    True

config.set_visible_devices: Only these devices may be used from now on; before the first tensor.
    >>> pl.config.set_visible_devices(pl.config.get_visible_devices())

config.get_memory_growth: Whether a device takes memory as it needs it.
    >>> pl.config.get_memory_growth(pl.config.list_physical_devices("CPU")[0])
    False

config.get_memory_info: Bytes in use on a device, now and at the peak.
    >>> sorted(pl.config.get_memory_info("CPU:0"))
    ['current', 'peak']

config.get_logical_device_configuration: The parts that a device was divided into; None when it was not.
    >>> pl.config.get_logical_device_configuration(pl.config.list_physical_devices("CPU")[0])
    []

config.get_memory_fraction: The share of the machine's memory that a device may take.
    >>> pl.config.get_memory_fraction(pl.config.list_physical_devices("CPU")[0])
    0.0

config.get_threads: The number of threads that compute.
    >>> pl.config.get_threads() >= 1
    True

config.set_threads: Sets the number of threads that compute.
    >>> pl.config.set_threads(pl.config.get_threads())

config.get_seed: The seed of draws that have none of their own.
    >>> pl.config.set_seed(7)
    >>> pl.config.get_seed()
    7

config.set_seed: Draws without a seed of their own repeat from here.
    >>> pl.config.set_seed(7)
    >>> first = pl.random_normal((3,))
    >>> pl.config.set_seed(7)
    >>> (pl.random_normal((3,)) == first).all().item()
    True

config.get_log_level: What is written to the log: "off" to "trace".
    >>> pl.config.get_log_level()
    'warning'

config.set_log_level: What is written to the log: "off" to "trace".
    >>> pl.config.set_log_level(pl.config.get_log_level())

config.get_lazy_allocation: Whether memory is taken from the system only when it is touched.
    >>> pl.config.get_lazy_allocation() in (True, False)
    True

config.set_lazy_allocation: Whether memory is taken from the system only when it is touched.
    >>> pl.config.set_lazy_allocation(pl.config.get_lazy_allocation())

config.get_deferred_release: Whether freed blocks are released later, at safe points.
    >>> pl.config.get_deferred_release() in (True, False)
    True

config.set_deferred_release: Whether freed blocks are released later, at safe points.
    >>> pl.config.set_deferred_release(pl.config.get_deferred_release())

losses.BinaryCrossentropy: For one class or several that do not exclude each other: targets are 0 or 1.
    >>> pl.losses.BinaryCrossentropy(from_logits=True)([[1.0]], [[1000.0]]).item()
    0.0

losses.CategoricalCrossentropy: For exclusive classes: targets are class probabilities.
    >>> pl.losses.CategoricalCrossentropy(from_logits=True)([[1.0, 0.0]], [[100.0, 0.0]]).item()
    0.0

losses.SparseCategoricalCrossentropy: For exclusive classes: targets are class numbers.
    >>> pl.losses.SparseCategoricalCrossentropy(from_logits=True)([0], [[100.0, 0.0]]).item()
    0.0

losses.MeanSquaredError: The mean of squared differences.
    >>> pl.losses.MeanSquaredError()([[1.0, 2.0]], [[1.0, 4.0]]).item()
    2.0

losses.MeanAbsoluteError: The mean of differences without sign.
    >>> pl.losses.MeanAbsoluteError()([[1.0, 2.0]], [[1.0, 4.0]]).item()
    1.0

losses.MeanAbsolutePercentageError: The mean of differences in percent of the targets.
    >>> pl.losses.MeanAbsolutePercentageError()([[1.0, 2.0]], [[1.0, 4.0]]).item()
    50.0

losses.MeanSquaredLogarithmicError: The mean of squared differences of log(1 + x).
    >>> pl.losses.MeanSquaredLogarithmicError()([[1.0]], [[1.0]]).item()
    0.0

losses.LogCosh: Like squares near 0, like absolute values far from it.
    >>> pl.losses.LogCosh()([[1.0]], [[1.0]]).item()
    0.0

losses.Poisson: For counts: predictions - targets log(predictions).
    >>> pl.losses.Poisson()([[0.0]], [[2.0]]).item()
    2.0

losses.KLDivergence: The divergence of the predicted probabilities from the targets.
    >>> pl.losses.KLDivergence()([[1.0, 0.0]], [[1.0, 0.0]]).item()
    0.0

losses.Hinge: max(1 - target prediction, 0), targets -1 or 1.
    >>> pl.losses.Hinge()([[1.0]], [[0.25]]).item()
    0.75

losses.SquaredHinge: The square of Hinge.
    >>> pl.losses.SquaredHinge()([[1.0]], [[0.5]]).item()
    0.25

losses.CategoricalHinge: How far the right class is from exceeding the others by 1.
    >>> pl.losses.CategoricalHinge()([[1.0, 0.0]], [[1.0, 0.5]]).item()
    0.5

losses.CosineSimilarity: -1 where predictions point as targets do.
    >>> pl.losses.CosineSimilarity()([[1.0, 0.0]], [[1.0, 0.0]]).item()
    -1.0

losses.Huber: Half squares up to delta, straight beyond.
    >>> pl.losses.Huber(delta=1.0)([[0.0]], [[3.0]]).item()
    2.5

losses.get: A loss by its name.
    >>> pl.losses.get("mse").name
    'mse'

metrics.Accuracy: How often the prediction is right; the form of the targets decides how that is tested.
    >>> m = pl.metrics.Accuracy()
    >>> m.update_state([0, 1], [[0.9, 0.1], [0.8, 0.2]])
    >>> m.result()
    0.5

metrics.BinaryAccuracy: How often predictions are on the right side of the threshold.
    >>> m = pl.metrics.BinaryAccuracy()
    >>> m.update_state([[1.0], [0.0]], [[0.9], [0.8]])
    >>> m.result()
    0.5

metrics.Precision: The fraction of predicted positives that are right.
    >>> m = pl.metrics.Precision()
    >>> m.update_state([[1.0], [0.0]], [[0.9], [0.8]])
    >>> m.result()
    0.5

metrics.Recall: The fraction of actual positives that are predicted.
    >>> m = pl.metrics.Recall()
    >>> m.update_state([[1.0], [1.0]], [[0.9], [0.2]])
    >>> m.result()
    0.5

metrics.AUC: The area under the curve of hits over false alarms.
    >>> m = pl.metrics.AUC()
    >>> m.update_state([[1.0], [0.0]], [[0.9], [0.2]])
    >>> round(m.result(), 3)
    1.0

metrics.TopK: How often the right class is among the k likeliest.
    >>> m = pl.metrics.TopK(k=1)
    >>> m.update_state([0, 1], [[0.9, 0.1], [0.8, 0.2]])
    >>> m.result()
    0.5

metrics.MeanAbsoluteError: The mean of differences without sign.
    >>> m = pl.metrics.MeanAbsoluteError()
    >>> m.update_state([[1.0]], [[3.0]])
    >>> m.result()
    2.0

metrics.MeanSquaredError: The mean of squared differences.
    >>> m = pl.metrics.MeanSquaredError()
    >>> m.update_state([[1.0]], [[3.0]])
    >>> m.result()
    4.0

metrics.RootMeanSquaredError: The root of the mean of squared differences.
    >>> m = pl.metrics.RootMeanSquaredError()
    >>> m.update_state([[1.0]], [[3.0]])
    >>> m.result()
    2.0

optimizers.SGD: Steps along the gradient, with momentum if wanted.
    >>> pl.optimizers.SGD(0.1, momentum=0.9).learning_rate
    0.1

optimizers.RMSprop: Steps divided by a moving root of squared gradients.
    >>> pl.optimizers.RMSprop().learning_rate
    0.001

optimizers.Adagrad: Steps divided by the root of all squared gradients so far.
    >>> pl.optimizers.Adagrad().learning_rate
    0.001

optimizers.Adadelta: Steps by moving roots of squared gradients and of squared steps.
    >>> pl.optimizers.Adadelta().learning_rate
    0.001

optimizers.Adam: Moving means of gradients and of their squares.
    >>> pl.optimizers.Adam(0.01).learning_rate
    0.01

optimizers.AdamW: Adam, with weights that decay on their own.
    >>> pl.optimizers.AdamW(weight_decay=0.01).learning_rate
    0.001

optimizers.Adamax: Adam with the largest gradient in place of squares.
    >>> pl.optimizers.Adamax().learning_rate
    0.001

optimizers.get: An optimizer by its name.
    >>> pl.optimizers.get("adam").learning_rate
    0.001

train.GradientDescentOptimizer: TensorFlow 1's: steps along the gradient.
    >>> step = pl.train.GradientDescentOptimizer(0.1)

train.MomentumOptimizer: TensorFlow 1's: steps with momentum.
    >>> step = pl.train.MomentumOptimizer(0.1, 0.9)

train.AdagradOptimizer: TensorFlow 1's Adagrad.
    >>> step = pl.train.AdagradOptimizer(0.1)

train.AdamOptimizer: TensorFlow 1's Adam.
    >>> step = pl.train.AdamOptimizer(0.001)

train.RMSPropOptimizer: TensorFlow 1's RMSProp.
    >>> step = pl.train.RMSPropOptimizer(0.001)

native_callbacks.ModelCheckpoint: Saves the model after each epoch, or only when the monitored value improves.
    >>> callback = pl.callbacks.ModelCheckpoint("best", monitor="loss", save_best_only=True)

native_callbacks.EarlyStopping: Ends the fit when the monitored value has not improved for some epochs.
    >>> callback = pl.callbacks.EarlyStopping(monitor="val_loss", patience=3, restore_best_weights=True)

native_callbacks.ReduceLROnPlateau: Lowers the learning rate when the monitored value has not improved for some epochs.
    >>> callback = pl.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=2)

native_callbacks.TensorBoard: Writes losses, metrics and memory for TensorBoard.
    >>> callback = pl.callbacks.TensorBoard("logs")

native_callbacks.CSVLogger: Writes a line of numbers for each epoch.
    >>> callback = pl.callbacks.CSVLogger("log.csv")

native_callbacks.LearningRateScheduler: The learning rate of each epoch, from schedule(epoch, rate).
    >>> callback = pl.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9)

Error: The base of all errors of this package.
    >>> issubclass(pl.OutOfMemory, pl.Error)
    True

InvalidArgument: An argument that does not fit; a ValueError.
    >>> try:
    ...     pl.ones((2, 3)) @ pl.ones((2, 3))
    ... except ValueError as e:
    ...     print(type(e).__name__)
    InvalidArgument

FailedPrecondition: Something must happen before, or must not have happened; a RuntimeError.
    >>> issubclass(pl.FailedPrecondition, RuntimeError)
    True

OutOfMemory: A budget or device has no room; a MemoryError with its numbers: requested, limit, in_use, smallest_sufficient_limit, holders, tried.
    >>> try:
    ...     with pl.budget("small", 100):
    ...         pl.ones(1000)
    ... except MemoryError as e:
    ...     print(e.requested, e.limit)
    4000 100

NotFound: Nothing has the requested name; a LookupError and a FileNotFoundError.
    >>> try:
    ...     pl.load_model("missing")
    ... except FileNotFoundError as e:
    ...     print(type(e).__name__)
    NotFound

Corruption: A file is damaged; the message has the place. A ValueError.
    >>> with open("w.npz", "wb") as file:
    ...     _ = file.write(b"nothing")
    >>> try:
    ...     pl.load_npz("w.npz")
    ... except pl.Corruption:
    ...     print("damaged")
    damaged

Unsupported: Understood, but not offered here; a NotImplementedError.
    >>> issubclass(pl.Unsupported, NotImplementedError)
    True

Disposed: A tensor was used after dispose() or after the end of its scope; a RuntimeError.
    >>> x = pl.ones(3)
    >>> x.dispose()
    >>> try:
    ...     x + 1
    ... except pl.Disposed:
    ...     print("gone")
    gone

Leak: A LeakCheck found tensors that should be gone; an AssertionError.
    >>> kept = []
    >>> try:
    ...     with pl.LeakCheck():
    ...         kept.append(pl.ones(3))
    ... except pl.Leak:
    ...     print("a tensor is left")
    a tensor is left

Unavailable: Another process of the job is gone, or does not answer in time; rank says which. A ConnectionError.
    >>> issubclass(pl.Unavailable, ConnectionError)
    True

DType: The type of a tensor's elements; equal to its name and to NumPy's.
    >>> pl.float32 == "float32", pl.float32.itemsize, pl.int8.is_floating
    (True, 4, False)

Tensor: An array that does not change. pl.asarray() and the like make them; operators, indexing and methods are NumPy's.
    >>> x = pl.Tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.shape, (x + 1)[0].tolist(), (x @ x.T).sum().item()
    ((2, 2), [2.0, 3.0], 52.0)

Lease: One tensor of a pool, until it ends; a buffer that can be written.
    >>> pool = pl.TensorPool((1,), capacity=1)
    >>> with pool.acquire() as lease:
    ...     memoryview(lease)[0] = 5.0
    ...     print(lease.tensor.tolist())
    [5.0]

Tidy: A scope: tensors made inside are disposed at its end, except those that are kept. Returned by pl.tidy().
    >>> with pl.tidy() as scope:
    ...     y = scope.keep(pl.ones(3) * 2)
    >>> y.tolist()
    [2.0, 2.0, 2.0]

Budget: A limit in bytes that its charges never pass; budgets form a tree. Returned by pl.budget().
    >>> with pl.budget("step", "1MiB") as budget:
    ...     x = pl.ones(1000)
    >>> budget.name, budget.limit, budget.used >= 4000
    ('step', 1048576, True)

DeviceScope: Tensors made inside are on that device. Returned by pl.device().
    >>> with pl.device("CPU:0"):
    ...     x = pl.ones(3)

NameScope: Everything made inside carries the name in every report. Returned by pl.name_scope().
    >>> with pl.name_scope("encoder"):
    ...     x = pl.ones(3)

MemoryInfo: The number of live tensors, of their buffers, and of bytes in those. Returned by pl.memory().
    >>> info = pl.memory()
    >>> info.num_tensors >= info.num_data_buffers
    True

MemoryStats: The state of one device's memory now, and its peaks. Returned by pl.memory_stats().
    >>> stats = pl.memory_stats()
    >>> stats.bytes_in_use <= stats.peak_bytes_in_use <= stats.bytes_limit
    True

LiveTensor: A live tensor, and what is known about it. Listed by pl.live_tensors().
    >>> x = pl.ones(3)
    >>> [(t.shape, t.dtype) for t in pl.live_tensors() if t.id == x.id]
    [((3,), plimsoll.float32)]

Holders: What keeps a tensor and its bytes alive. Returned by pl.who_holds(); a picture in a notebook.
    >>> x = pl.ones(3)
    >>> print(str(pl.who_holds(x)).splitlines()[0])
    tensor (3,): float32, made by ones; buffer of 12 B on CPU:0

GrowthRow: Tensors of one kind that there are more of: where they were made, how many, how many bytes.
    >>> growth = pl.Growth()
    >>> x = pl.ones(3)
    >>> [(row.count, row.bytes) for row in growth.take()]
    [(1, 12)]

MemoryAlert: The argument of a callback of pl.on_memory_alert(): the device, its use and its limit.
    >>> def tell(alert: pl.MemoryAlert):
    ...     print(alert)
    >>> handle = pl.on_memory_alert(0.9, tell)

AlertHandle: Calls back while it lives. Returned by pl.on_memory_alert().
    >>> handle = pl.on_memory_alert(0.9, print)
    >>> del handle

Recording: Writes what happens in memory to a trace, between `with` and the end of its block. Returned by pl.record().
    >>> with pl.record("run.trace") as recording:
    ...     x = pl.ones(1000) * 2

NoGradient: A scope in which tapes see nothing. Returned by pl.no_grad().
    >>> with pl.no_grad():
    ...     x = pl.ones(3) * 2

FileWriter: A graph and what happens in its runs, for TensorBoard.
    >>> with pl.FileWriter("logs") as writer:
    ...     writer.add_scalar("loss", 0.5, step=1)

Graph: Operations that are written down instead of run.
    >>> with pl.Graph() as g:
    ...     x = pl.placeholder("float32", (2,))
    ...     y = x * 2
    >>> with pl.Session(g) as session:
    ...     print(session.run(y, {x: [1, 2]}).tolist())
    [2.0, 4.0]

VariablesInitializer: What pl.global_variables_initializer() gives: session.run() of it gives every variable its initial value.
    >>> with pl.Graph() as g:
    ...     w = pl.Variable(3.0)
    >>> with pl.Session(g) as session:
    ...     session.run(pl.global_variables_initializer())

Saver: The variables of a session, in checkpoints that TensorFlow reads and writes.
    >>> with pl.Graph() as g:
    ...     w = pl.Variable(3.0, name="w")
    ...     saver = pl.Saver()
    >>> with pl.Session(g) as session:
    ...     session.run(pl.global_variables_initializer())
    ...     path = saver.save(session, "model.ckpt")
    ...     saver.restore(session, path)

Function: A function that is traced once for each kind of arguments, and then runs planned. Returned by pl.function().
    >>> f = pl.function(lambda x: pl.relu(x) * 2)
    >>> f(pl.asarray([-1.0, 3.0])).tolist(), f.trace_count
    ([0.0, 6.0], 1)

Dataset: A sequence of examples that can be iterated any number of times; with TensorFlow's methods.
    >>> data = pl.Dataset.from_tensors(pl.arange(5), pl.arange(5) * 10).batch(2)
    >>> [y.tolist() for x, y in data]
    [[0, 10], [20, 30], [40]]

Pass: One pass over a Dataset, as returned by iter(dataset).
    >>> x, y = next(iter(pl.Dataset.from_tensors([[1.0]], [2.0])))
    >>> x.tolist(), y.item()
    ([1.0], 2.0)

LayerOutput: A place in a model that is described, what layers give when they are called with another: no elements, but operators.
    >>> x = pl.Input((4,))
    >>> y = pl.layers.Dense(4)(x) + x
    >>> pl.Model(x, y).output_shape
    (None, 4)

Layer: A part of a model. Derive from it: build() makes weights, call() uses them.
    >>> class Scale(pl.layers.Layer):
    ...     def build(self, input_shape):
    ...         self.scale = self.add_weight("scale", input_shape[-1:], initializer="ones")
    ...     def call(self, x):
    ...         return x * self.scale
    >>> Scale()(pl.ones((1, 2))).tolist()
    [[1.0, 1.0]]

Optimizer: Changes parameters in place by their gradients. Those of pl.optimizers are.
    >>> w = pl.Variable([1.0])
    >>> pl.optimizers.SGD(0.5).apply([pl.asarray([1.0])], [w])
    >>> w.tolist()
    [0.5]

Loss: The value that training minimizes; pl.losses has the ready-made ones.
    >>> pl.losses.MeanSquaredError()([[1.0]], [[3.0]]).item()
    4.0

Metric: A figure about a model's predictions reported with the loss; pl.metrics has the ready-made ones.
    >>> m = pl.metrics.MeanAbsoluteError()
    >>> m.update_state([[1.0]], [[3.0]])
    >>> m.result()
    2.0

NativeCallback: A ready-made callback; pl.callbacks has functions that make them.
    >>> isinstance(pl.callbacks.CSVLogger("log.csv"), pl.NativeCallback)
    True

BudgetPoint: A budget that a run fits in, and how many times as long it takes there. What a forecast's front lists.
    >>> model = pl.Sequential([pl.layers.Dense(4, input_shape=(8,))])
    >>> model.compile(optimizer="sgd", loss="mse")
    >>> model.forecast(batch_size=16).front[0].slowdown
    1.0

MemoryForecast: The memory that training a model takes, known before it runs, to the byte. Returned by model.forecast().
    >>> model = pl.Sequential([pl.layers.Dense(4, input_shape=(8,))])
    >>> model.compile(optimizer="sgd", loss="mse")
    >>> forecast = model.forecast(batch_size=16)
    >>> forecast.smallest_budget <= forecast.peak_bytes, forecast.fits("1MiB")
    (True, True)

Model: Layers that are trained and used together: described by its inputs and outputs, or your own class with a call().
    >>> x = pl.Input((4,))
    >>> model = pl.Model(x, pl.layers.Dense(2)(x))
    >>> model.compile(optimizer="adam", loss="mse")
    >>> model.fit(pl.ones((8, 4)), pl.ones((8, 2)), verbose=0)
    <History of 1 epochs: loss>

OnnxModel: An ONNX file as it is: by the names of its ends, whole inputs at once.
    >>> try:
    ...     pl.OnnxModel("missing.onnx")
    ... except FileNotFoundError:
    ...     print("no such file")
    no such file

LiveView: While it lives, `plimsoll top` and `plimsoll serve` of the same user show this process's memory.
    >>> def watched(train):
    ...     with pl.LiveView("trainer"):
    ...         return train()

config.PhysicalDevice: A device of this machine.
    >>> pl.config.list_physical_devices("CPU")[0].type
    'CPU'

config.LogicalDevice: A device that tensors go to.
    >>> pl.config.list_logical_devices()[0].type
    'CPU'

config.LogicalDeviceConfiguration: The settings of a part of a device: its limit.
    >>> pl.config.LogicalDeviceConfiguration(memory_limit="64MiB").memory_limit
    67108864

distributed.Job: The processes that train together, that mpirun started; one object in each of them.
    >>> def train(model, x, y):
    ...     with pl.distributed.Job() as job:
    ...         return model.fit(x, y, distributed=job)

distributed.Training: How a fit is distributed over a job: fit(..., distributed=Training(job, slices=32, shard_optimizer=True)).
    >>> def train(model, x, y, job):
    ...     return model.fit(x, y, distributed=pl.distributed.Training(job, slices=32, shard_optimizer=True))

train.Optimizer: One whose steps are nodes of a graph.
    >>> with pl.Graph() as g:
    ...     w = pl.Variable(1.0)
    ...     step = pl.train.GradientDescentOptimizer(0.5).minimize(w * w)
    >>> with pl.Session(g) as session:
    ...     session.run(pl.global_variables_initializer())
    ...     session.run(step)
    ...     print(session.run(w).item())
    0.0
'''

# Of layers, whose classes are Python's and say themselves what they are.
_LAYERS = """\
Activation:
    >>> pl.layers.Activation("relu")(pl.asarray([[-1.0, 2.0]])).tolist()
    [[0.0, 2.0]]

Add:
    >>> pl.layers.Add()([pl.ones((1, 2)), pl.ones((1, 2))]).tolist()
    [[2.0, 2.0]]

AlphaDropout:
    >>> pl.layers.AlphaDropout(0.5)(pl.ones((1, 2))).tolist()
    [[1.0, 1.0]]

Average:
    >>> pl.layers.Average()([pl.ones((1, 2)), pl.zeros((1, 2))]).tolist()
    [[0.5, 0.5]]

AveragePooling1D:
    >>> pl.layers.AveragePooling1D(2)(pl.ones((1, 4, 3))).shape
    (1, 2, 3)

AveragePooling2D:
    >>> pl.layers.AveragePooling2D(2)(pl.ones((1, 4, 4, 3))).shape
    (1, 2, 2, 3)

BatchNormalization:
    >>> pl.layers.BatchNormalization()(pl.ones((2, 3))).shape
    (2, 3)

Bidirectional:
    >>> pl.layers.Bidirectional(pl.layers.LSTM(4))(pl.ones((1, 5, 3))).shape
    (1, 8)

Concatenate:
    >>> pl.layers.Concatenate()([pl.ones((1, 2)), pl.ones((1, 3))]).shape
    (1, 5)

Conv1D:
    >>> pl.layers.Conv1D(4, 3)(pl.ones((1, 8, 2))).shape
    (1, 6, 4)

Conv2D:
    >>> pl.layers.Conv2D(4, 3, padding="same")(pl.ones((1, 8, 8, 2))).shape
    (1, 8, 8, 4)

Conv2DTranspose:
    >>> pl.layers.Conv2DTranspose(4, 2, strides=2)(pl.ones((1, 4, 4, 2))).shape
    (1, 8, 8, 4)

Cropping2D:
    >>> pl.layers.Cropping2D(1)(pl.ones((1, 4, 4, 2))).shape
    (1, 2, 2, 2)

Dense:
    >>> pl.layers.Dense(2, activation="relu")(pl.ones((1, 3))).shape
    (1, 2)

DepthwiseConv2D:
    >>> pl.layers.DepthwiseConv2D(3)(pl.ones((1, 8, 8, 2))).shape
    (1, 6, 6, 2)

Dot:
    >>> pl.layers.Dot(axes=1)([pl.ones((1, 3)), pl.ones((1, 3))]).tolist()
    [[3.0]]

Dropout:
    >>> pl.layers.Dropout(0.5)(pl.ones((1, 2))).tolist()
    [[1.0, 1.0]]

ELU:
    >>> pl.layers.ELU()(pl.asarray([[0.0, 2.0]])).tolist()
    [[0.0, 2.0]]

Embedding:
    >>> pl.layers.Embedding(10, 4)(pl.asarray([[1, 2, 3]])).shape
    (1, 3, 4)

Flatten:
    >>> pl.layers.Flatten()(pl.ones((2, 3, 4))).shape
    (2, 12)

GRU:
    >>> pl.layers.GRU(4)(pl.ones((1, 5, 3))).shape
    (1, 4)

GaussianDropout:
    >>> pl.layers.GaussianDropout(0.5)(pl.ones((1, 2))).tolist()
    [[1.0, 1.0]]

GaussianNoise:
    >>> pl.layers.GaussianNoise(0.1)(pl.ones((1, 2))).tolist()
    [[1.0, 1.0]]

GlobalAveragePooling1D:
    >>> pl.layers.GlobalAveragePooling1D()(pl.ones((1, 4, 3))).shape
    (1, 3)

GlobalAveragePooling2D:
    >>> pl.layers.GlobalAveragePooling2D()(pl.ones((1, 4, 4, 3))).shape
    (1, 3)

GlobalMaxPooling1D:
    >>> pl.layers.GlobalMaxPooling1D()(pl.ones((1, 4, 3))).shape
    (1, 3)

GlobalMaxPooling2D:
    >>> pl.layers.GlobalMaxPooling2D()(pl.ones((1, 4, 4, 3))).shape
    (1, 3)

LSTM:
    >>> pl.layers.LSTM(4, return_sequences=True)(pl.ones((1, 5, 3))).shape
    (1, 5, 4)

LayerNormalization:
    >>> pl.layers.LayerNormalization()(pl.ones((2, 3))).shape
    (2, 3)

LeakyReLU:
    >>> pl.layers.LeakyReLU(alpha=0.5)(pl.asarray([[-2.0, 2.0]])).tolist()
    [[-1.0, 2.0]]

Masking:
    >>> pl.layers.Masking()(pl.ones((1, 5, 3))).shape
    (1, 5, 3)

MaxPooling1D:
    >>> pl.layers.MaxPooling1D(2)(pl.ones((1, 4, 3))).shape
    (1, 2, 3)

MaxPooling2D:
    >>> pl.layers.MaxPooling2D(2)(pl.ones((1, 4, 4, 3))).shape
    (1, 2, 2, 3)

Maximum:
    >>> pl.layers.Maximum()([pl.ones((1, 2)), pl.zeros((1, 2))]).tolist()
    [[1.0, 1.0]]

Minimum:
    >>> pl.layers.Minimum()([pl.ones((1, 2)), pl.zeros((1, 2))]).tolist()
    [[0.0, 0.0]]

MultiHeadAttention:
    >>> x = pl.ones((1, 5, 8))
    >>> pl.layers.MultiHeadAttention(num_heads=2, key_dim=4)([x, x]).shape
    (1, 5, 8)

Multiply:
    >>> pl.layers.Multiply()([pl.ones((1, 2)), pl.zeros((1, 2))]).tolist()
    [[0.0, 0.0]]

PReLU:
    >>> pl.layers.PReLU()(pl.asarray([[-2.0, 2.0]])).tolist()
    [[0.0, 2.0]]

Permute:
    >>> pl.layers.Permute((2, 1))(pl.ones((1, 2, 3))).shape
    (1, 3, 2)

ReLU:
    >>> pl.layers.ReLU(max_value=6.0)(pl.asarray([[-1.0, 8.0]])).tolist()
    [[0.0, 6.0]]

RepeatVector:
    >>> pl.layers.RepeatVector(4)(pl.ones((1, 2))).shape
    (1, 4, 2)

Reshape:
    >>> pl.layers.Reshape((2, -1))(pl.ones((1, 6))).shape
    (1, 2, 3)

SeparableConv2D:
    >>> pl.layers.SeparableConv2D(4, 3)(pl.ones((1, 8, 8, 2))).shape
    (1, 6, 6, 4)

SimpleRNN:
    >>> pl.layers.SimpleRNN(4)(pl.ones((1, 5, 3))).shape
    (1, 4)

Softmax:
    >>> pl.layers.Softmax()(pl.zeros((1, 2))).tolist()
    [[0.5, 0.5]]

SpatialDropout1D:
    >>> pl.layers.SpatialDropout1D(0.5)(pl.ones((1, 4, 3))).shape
    (1, 4, 3)

SpatialDropout2D:
    >>> pl.layers.SpatialDropout2D(0.5)(pl.ones((1, 4, 4, 3))).shape
    (1, 4, 4, 3)

Subtract:
    >>> pl.layers.Subtract()([pl.ones((1, 2)), pl.ones((1, 2))]).tolist()
    [[0.0, 0.0]]

ThresholdedReLU:
    >>> pl.layers.ThresholdedReLU(theta=1.0)(pl.asarray([[0.5, 2.0]])).tolist()
    [[0.0, 2.0]]

TimeDistributed:
    >>> pl.layers.TimeDistributed(pl.layers.Dense(4))(pl.ones((1, 5, 3))).shape
    (1, 5, 4)

UpSampling1D:
    >>> pl.layers.UpSampling1D(2)(pl.ones((1, 4, 3))).shape
    (1, 8, 3)

UpSampling2D:
    >>> pl.layers.UpSampling2D(2)(pl.ones((1, 4, 4, 3))).shape
    (1, 8, 8, 3)

ZeroPadding2D:
    >>> pl.layers.ZeroPadding2D(1)(pl.ones((1, 4, 4, 3))).shape
    (1, 6, 6, 3)
"""


def _parsed(table):
    for entry in table.strip("\n").split("\n\n"):
        first, _, example = entry.partition("\n")
        name, _, text = first.partition(":")
        example = "\n".join(line[4:] for line in example.split("\n"))
        yield name, f"{text.strip()}\n\n{example}".strip("\n")


def texts():
    """By name; those of submodules with the module in front: "losses.Huber"."""
    return dict(_parsed(_TEXTS))


def document_classes(module):
    """Gives classes of the extension, and of its submodules, their texts."""
    for name, text in _parsed(_TEXTS):
        value = module
        for part in name.split("."):
            value = getattr(value, part, None)
        if isinstance(value, type):
            value.__doc__ = text


def document_layers(layers):
    """Adds the examples to what layers say of themselves."""
    for name, example in _parsed(_LAYERS):
        layer = layers[name]
        layer.__doc__ = f"{layer.__doc__}\n\n{example}"
