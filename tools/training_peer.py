"""The other side of tools/interop_training: the same training steps by PyTorch or TensorFlow, as in its documentation.

    training_peer.py torch|tensorflow THREADS      # answers as tools/interop_training.cc does, modes left out;
                                                   # "bytes" by a sentence where the system does not report them

PyTorch: eager, its fused Adam. TensorFlow: one tf.function for the step (Keras layers, Keras' Adam, no jit).
"""
import os
import sys
import time

SYSTEM, THREADS = sys.argv[1], int(sys.argv[2])
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["OMP_NUM_THREADS"] = str(THREADS)


def torch_step(name):
    import torch
    from torch import nn
    torch.manual_seed(1)
    classes = lambda batch: torch.arange(batch).remainder(10)

    def conv_norm(i, o, size=3):
        return nn.Sequential(nn.Conv2d(i, o, size, padding=size // 2, bias=False), nn.BatchNorm2d(o))

    class Resnet(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.across = conv_norm(3, 32), conv_norm(32, 64, 1)
            pair = lambda i, o: nn.Sequential(conv_norm(i, o), nn.ReLU(True), conv_norm(o, o))
            self.first, self.second, self.head = pair(32, 32), pair(32, 64), nn.Linear(64, 10)

        def forward(self, x):
            a = self.stem(x).relu_()
            b = self.first(a).add_(a).relu_()
            c = self.second(b).add_(self.across(b)).relu_()
            return self.head(c.mean((2, 3)))

    class Lstm(nn.Module):
        def __init__(self, units):
            super().__init__()
            self.lstm, self.head = nn.LSTM(32, units), nn.Linear(units, 1)

        def forward(self, x):
            return self.head(self.lstm(x)[0][-1])

    cross, square = nn.functional.cross_entropy, nn.functional.mse_loss
    if name == "tiny_mlp":
        net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
        x, y, loss = torch.randn(32, 10), (torch.rand(32, 1) > 0.5).float(), nn.functional.binary_cross_entropy_with_logits
    elif name == "mlp":
        net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        x, y, loss = torch.randn(128, 784), classes(128), cross
    elif name == "lenet":
        net = nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
                            nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
        x, y, loss = torch.randn(64, 3, 32, 32), classes(64), cross
    elif name == "resnet":
        net, x, y, loss = Resnet(), torch.randn(64, 3, 32, 32), classes(64), cross
    elif name.startswith("lstm"):
        net, x, y, loss = Lstm(int(name[4:])), torch.randn(50, 32, 32), torch.randn(32, 1), square
    else:
        layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0, batch_first=True)
        net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        x, y, loss = torch.randn(8, 128, 256), torch.randn(8, 128, 256), square
    adam = torch.optim.Adam(net.parameters(), fused=True)

    def step():
        adam.zero_grad(set_to_none=True)
        value = loss(net(x), y)
        value.backward()
        adam.step()
        return value.item()
    step.drop_gradients = lambda: adam.zero_grad(set_to_none=True)
    return step


def torch_bytes(name):
    """The peak of the allocations that the profiler saw in a steady step. It begins without gradients, which live from
    step to step, so they count once; memory that oneDNN and OpenBLAS take for themselves is not seen."""
    from torch_bytes import peak_bytes
    step = torch_step(name)
    for _ in range(3):
        step()
    step.drop_gradients()
    return peak_bytes(step)


def tensorflow_step(name):
    import tensorflow as tf
    keras, layers = tf.keras, tf.keras.layers
    tf.random.set_seed(1)
    normal = tf.random.normal
    classes = lambda batch: tf.range(batch) % 10
    cross = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    square = keras.losses.MeanSquaredError()

    def conv_norm(x, o, size=3, relu=False):
        x = layers.BatchNormalization()(layers.Conv2D(o, size, padding="same", use_bias=False)(x))
        return layers.ReLU()(x) if relu else x

    if name == "tiny_mlp":
        net = keras.Sequential([layers.Input((10,)), layers.Dense(16, "relu"), layers.Dense(1)])
        x, y = normal((32, 10)), tf.cast(tf.random.uniform((32, 1)) > 0.5, tf.float32)
        loss = keras.losses.BinaryCrossentropy(from_logits=True)
    elif name == "mlp":
        net = keras.Sequential([layers.Input((784,)), layers.Dense(512, "relu"), layers.Dense(512, "relu"), layers.Dense(10)])
        x, y, loss = normal((128, 784)), classes(128), cross
    elif name == "lenet":
        net = keras.Sequential([layers.Input((32, 32, 3)), layers.Conv2D(6, 5, activation="relu"), layers.MaxPooling2D(),
                                layers.Conv2D(16, 5, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
                                layers.Dense(120, "relu"), layers.Dense(84, "relu"), layers.Dense(10)])
        x, y, loss = normal((64, 32, 32, 3)), classes(64), cross
    elif name == "resnet":
        source = layers.Input((32, 32, 3))
        a = conv_norm(source, 32, relu=True)
        b = layers.ReLU()(layers.Add()([conv_norm(conv_norm(a, 32, relu=True), 32), a]))
        c = layers.ReLU()(layers.Add()([conv_norm(conv_norm(b, 64, relu=True), 64), conv_norm(b, 64, 1)]))
        net = keras.Model(source, layers.Dense(10)(layers.GlobalAveragePooling2D()(c)))
        x, y, loss = normal((64, 32, 32, 3)), classes(64), cross
    elif name.startswith("lstm"):
        net = keras.Sequential([layers.Input((50, 32)), layers.LSTM(int(name[4:])), layers.Dense(1)])
        x, y, loss = normal((32, 50, 32)), normal((32, 1)), square
    else:
        source = h = layers.Input((128, 256))
        for _ in range(2):
            h = layers.LayerNormalization()(h + layers.MultiHeadAttention(4, 64)(h, h))
            h = layers.LayerNormalization()(h + layers.Dense(256)(layers.Dense(1024, "relu")(h)))
        net = keras.Model(source, h)
        x, y, loss = normal((8, 128, 256)), normal((8, 128, 256)), square
    adam = keras.optimizers.Adam()
    adam.build(net.trainable_variables)

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            value = loss(y, net(x, training=True))
        adam.apply_gradients(zip(tape.gradient(value, net.trainable_variables), net.trainable_variables))
        return value

    return lambda: float(train())


def tensorflow_bytes(name):
    import tensorflow as tf
    step = tensorflow_step(name)
    for _ in range(3):
        step()
    try:
        before = tf.config.experimental.get_memory_info("CPU:0")["current"]
        tf.config.experimental.reset_memory_stats("CPU:0")
        step()
        return tf.config.experimental.get_memory_info("CPU:0")["peak"] - before
    except ValueError as error:
        return str(error)


def status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field + ":")) * 1024


def main():
    if SYSTEM == "torch":
        import torch
        torch.set_num_threads(THREADS)
        make, tensor_bytes = torch_step, torch_bytes
    else:
        import tensorflow as tf
        tf.config.threading.set_intra_op_parallelism_threads(THREADS)
        tf.config.threading.set_inter_op_parallelism_threads(THREADS)
        make, tensor_bytes = tensorflow_step, tensorflow_bytes
    ready = {}
    for line in sys.stdin:
        words = line.split()
        if words[0] == "bytes":
            print(tensor_bytes(words[1]), flush=True)
            continue
        if words[0] == "memory":
            before = status("VmRSS")
            with open("/proc/self/clear_refs", "w") as mark:
                mark.write("5")
            step = make(words[1])
            for _ in range(5):
                step()
            print(max(0, status("VmHWM") - before), flush=True)
            continue
        name, steps = words[0], int(words[1])
        if name not in ready:
            ready[name] = make(name)
            for _ in range(3):
                ready[name]()
        step = ready[name]
        start = time.perf_counter_ns()
        for _ in range(steps):
            step()
        print((time.perf_counter_ns() - start) / steps, flush=True)


main()
