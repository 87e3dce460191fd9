"""The peak of PyTorch's allocations in a step, as its profiler sees them: for training_peer.py and budget_peer.py."""


def peak_bytes(step):
    """Memory that libraries take for themselves is not seen."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step()
    changes = [(event.start_ns(), event.nbytes()) for event in profiled.profiler.kineto_results.events()
               if event.name() == "[memory]"]
    live = peak = 0
    for _, change in sorted(changes, key=lambda pair: pair[0]):
        live += change
        peak = max(peak, live)
    return peak
