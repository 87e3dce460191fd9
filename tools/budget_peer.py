"""The other side of tools/interop_budgets: the same training steps by PyTorch, with less memory in the ways it offers.

    budget_peer.py MODEL THREADS      # answers "bytes WAY" by the peak of a step above parameters, state and batch, in bytes;
                                      # "step WAY STEPS" by the least processor time of a step, in nanoseconds

WAY: eager · checkpoint:N (torch.utils.checkpoint over N runs of layers) · compiled:F (torch.compile with
torch._functorch.config.activation_memory_budget = F). The optimizer is PyTorch's fused Adam.
"""
import os
import sys
import time

MODEL, THREADS = sys.argv[1], int(sys.argv[2])
os.environ["OMP_NUM_THREADS"] = str(THREADS)
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import torch  # noqa: E402
import torch._functorch.config  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint_sequential  # noqa: E402
from torch_bytes import peak_bytes  # noqa: E402

torch.set_num_threads(THREADS)


class Encoder(nn.Module):
    """Attention and dense layers with layer norm after each, dropout after the attention."""

    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.dropout, self.first, self.second = nn.Dropout(0.1), nn.LayerNorm(width), nn.LayerNorm(width)
        self.dense = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = self.first(x + self.dropout(self.attention(x, x, x, need_weights=False)[0]))
        return self.second(x + self.dense(x))


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(1)


def parts():
    """The layers in order, and a batch."""
    torch.manual_seed(1)
    if MODEL == "mlp":
        list_of = []
        for i in range(24):
            list_of += [nn.Linear(256, 256), nn.Tanh() if i % 2 else nn.ReLU()]
            if i == 12:
                list_of.append(nn.Dropout(0.2))
        return [*list_of, nn.Linear(256, 1)], torch.randn(1024, 256), torch.randn(1024, 1)
    return [*(Encoder(256) for _ in range(6)), Mean(), nn.Linear(256, 1)], torch.randn(8, 64, 256), torch.randn(8, 1)


def make_step(way):
    kind, _, number = way.partition(":")
    layers, x, y = parts()
    network = nn.Sequential(*layers)
    adam = torch.optim.Adam(network.parameters(), fused=True)
    run = network
    if kind == "checkpoint":
        run = lambda x: checkpoint_sequential(network, int(number), x, use_reentrant=False)  # noqa: E731
    elif kind == "compiled":
        torch._dynamo.reset()
        torch._functorch.config.activation_memory_budget = float(number)
        run = torch.compile(network)

    def step():
        adam.zero_grad(set_to_none=True)
        nn.functional.mse_loss(run(x), y).backward()
        adam.step()
    step.begin = lambda: adam.zero_grad(set_to_none=True)
    for _ in range(3):
        step()
    return step


def step_bytes(way):
    """The peak of the allocations that the profiler saw in a steady step that begins without gradients. Memory that
    libraries take for themselves is not seen."""
    step = make_step(way)
    step.begin()
    return peak_bytes(step)


def main():
    ready = {}
    for line in sys.stdin:
        words = line.split()
        if words[0] == "bytes":
            print(step_bytes(words[1]), flush=True)
            continue
        way, steps = words[1], int(words[2])
        if way not in ready:
            ready[way] = make_step(way)
        least = float("inf")
        for _ in range(steps):
            begin = time.process_time_ns()
            ready[way]()
            least = min(least, time.process_time_ns() - begin)
        print(least, flush=True)


main()
