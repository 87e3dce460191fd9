"""The same training in less memory: what a forecast says, what a budget costs, and a model of one's own."""
import numpy as np

import plimsoll as pl


class Residual(pl.Model):
    """Dense layers, each added to what goes into it."""

    def __init__(self, width=64, depth=8):
        super().__init__()
        self.hidden = [pl.layers.Dense(width, activation="tanh", seed=i) for i in range(depth)]
        self.out = pl.layers.Dense(1, seed=depth)

    def call(self, x):
        for layer in self.hidden:
            x = x + layer(x)
        return self.out(x)


def make():
    model = Residual()
    model.compile(optimizer="adam", loss="mse")
    model.build((None, 64))
    return model


x = np.random.default_rng(0).normal(size=(1024, 64)).astype("float32")
y = np.sin(x).sum(axis=1, keepdims=True)

forecast = make().forecast(batch_size=256)
print(forecast)  # What a step takes, and the budgets worth choosing.
losses = []
for budget in (None, forecast.front[len(forecast.front) // 2].bytes, forecast.smallest_budget):
    history = make().fit(x, y, batch_size=256, epochs=2, verbose=0, shuffle=False, budget=budget)
    losses.append(history["loss"])
    print(f"budget {budget or 'none':>8}: peak {history.peak_bytes}, {100 * history.recomputed_fraction:.0f} % of the work done again, loss {history['loss'][-1]:.6f}")
assert losses[0] == losses[1] == losses[2]  # To the bit.
try:
    make().fit(x, y, batch_size=256, verbose=0, budget=forecast.smallest_budget - 1)
except pl.OutOfMemory as refusal:  # A MemoryError.
    print(f"one byte less is refused before the first step; it takes {refusal.smallest_sufficient_limit}")

# Without a model too: results that do not fit are dropped, and computed again when they are read.
with pl.budget("tight", "64KiB", evict=True) as budget:
    a = pl.asarray(x[:64])
    several = [pl.tanh(a * i) for i in range(10)]  # 16 KiB each.
    print("largest of each:", [round(each.max().item(), 3) for each in several], "within", budget.peak, "bytes")
