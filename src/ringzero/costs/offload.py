"""Past the GPU's memory: the seconds that copies to and from the host cost, and what hides them.

>>> efficiency(arithmetic_intensity("optimizer_states", sequence=2048, batch=2), bandwidth=70e9, peak_flops=71.68e12)
0.5

The device is the GPU, the host is the CPU's memory (``costs.tiers``). Sizes are in bytes of one rank, times in seconds.
ValueError for a window or a number that makes no sense.

Ren et al., "ZeRO-Offload" (2021); Rajbhandari et al., "ZeRO-Infinity" (2021); Sun et al., "STRONGHOLD" (SC 2022).
"""

from ringzero.costs.page.inputs import known, positive

STEP_FLOP = 2 + 2 + 4  # for a parameter and token: forward, recomputation, backward
MOVED = (  # bytes moved in a step (ZeRO-Infinity, section 4.1)
    ("parameters_gradients", 2 * 4),  # a parameter, 16 bits: for forward, recomputation, backward; its gradient once
    ("optimizer_states", 2 * 16),  # a parameter: fp32 parameter, gradient, momentum and variance, read and written
    ("activation_checkpoints", 2 * 2),  # a number of a layer's input, 16 bits: written and read
)


# ---- a window of layers


def window_seconds(copies: list[float], computes: list[float], window: int) -> float:
    """Seconds of one pass over layers of which at most ``window`` are on the device (Sun et al. 2022).

    ``copies[i]`` and ``computes[i]`` are the seconds to copy layer i to the device and to compute it. Layers are
    copied one at a time, in order, and a copy starts when a slot is free. A layer is computed when it is there and the
    layer before is done; then its slot is free.

    >>> window_seconds([1, 1, 1], [1, 1, 1], window=1)  # nothing overlaps
    6.0
    >>> window_seconds([1, 1, 1], [1, 1, 1], window=2)  # all copies but the first are hidden
    4.0
    """
    _check_layers(copies, computes)
    check_window(window, len(copies))
    copied, done = 0.0, [0.0]  # done[i + 1]: when layer i has been computed
    for layer, (copy, compute) in enumerate(zip(copies, computes, strict=True)):
        slot_is_free = done[layer + 1 - window] if layer >= window else 0.0
        copied = max(copied, slot_is_free) + copy
        done.append(max(copied, done[-1]) + compute)
    return done[-1]


def forward_backward_seconds(copies: list[float], forwards: list[float], backwards: list[float], window: int) -> float:
    """Seconds of a forward and a backward pass. The backward pass takes the layers in the opposite order.

    The last ``window`` layers are still on the device when the forward pass ends, so the backward pass copies the
    others only. Lists have one number a layer, in the order of the forward pass.
    """
    _check_layers(copies, forwards)
    _check_layers(copies, backwards)
    forward = window_seconds(copies, forwards, window)
    again = [0.0] * window + copies[::-1][window:]
    return forward + window_seconds(again, backwards[::-1], window)


def smallest_window(copies: list[float], forwards: list[float], backwards: list[float]) -> int:
    """The fewest layers on the device with which a step takes at most 1 % longer than the best time.

    >>> smallest_window([1] * 8, forwards=[2] * 8, backwards=[4] * 8)
    2
    """
    layers = len(copies)
    _check_layers(copies, forwards)
    seconds = [forward_backward_seconds(copies, forwards, backwards, k) for k in range(1, layers + 1)]
    best = min(seconds)
    return next(k for k in range(1, layers + 1) if seconds[k - 1] <= 1.01 * best)


def check_window(window: int, layers: int) -> None:
    """Raise ValueError unless so many layers have room for a window."""
    positive(layers=layers)
    if not 1 <= window <= layers:
        raise ValueError(f"window is {window}; give 1 to {layers}, the number of layers")


def _check_layers(copies, computes):
    if len(copies) != len(computes) or not copies:
        raise ValueError(f"{len(copies)} copies and {len(computes)} computations; give one of each for every layer")
    for seconds in (*copies, *computes):
        if not seconds >= 0:
            raise ValueError(f"a layer takes {seconds} seconds; give 0 or more")


# ---- weights read across the link


def direct_access_seconds(size: float, compute_seconds: float, link_bandwidth: float, reads: float = 1) -> float:
    """Seconds of a layer whose kernel reads ``size`` bytes of weights from the host while it computes.

    No copy is held on the device. ``reads`` is how many times the kernel reads each byte: a matrix product reads a
    weight once for each tile of its rows. ``compute_seconds`` are those with the weights on the device.
    """
    positive(size=size, compute_seconds=compute_seconds, link_bandwidth=link_bandwidth, reads=reads)
    return max(compute_seconds, size * reads / link_bandwidth)


def copied_access_seconds(
    size: float, compute_seconds: float, link_bandwidth: float, memory_bandwidth: float, reads: float = 1
) -> float:
    """Seconds of the same layer if its weights are first copied to the device, then read from the device's memory.

    >>> direct_access_seconds(1e9, 0.02, link_bandwidth=50e9), direct_access_seconds(1e9, 0.02, 50e9, reads=4)
    (0.02, 0.08)
    >>> copied_access_seconds(1e9, 0.02, link_bandwidth=50e9, memory_bandwidth=3e12, reads=4)
    0.04
    """
    positive(size=size, compute_seconds=compute_seconds, link_bandwidth=link_bandwidth, reads=reads)
    positive(memory_bandwidth=memory_bandwidth)
    return size / link_bandwidth + max(compute_seconds, size * reads / memory_bandwidth)


# ---- how much bandwidth is enough


def arithmetic_intensity(
    kind: str,
    sequence: float = 0,
    batch: float = 0,
    hidden: float = 0,
    checkpoint_interval: float = 1,
) -> float:
    """FLOP of a step for each byte moved of what ``kind`` says (Rajbhandari et al. 2021, section 4.1).

    "parameters_gradients" and "optimizer_states" need ``sequence`` and ``batch``, the sequences of one GPU:
    sequence batch, and a quarter of it. "activation_checkpoints" needs ``hidden``: 24 hidden ``checkpoint_interval``,
    where one of so many layers keeps its input in 16 bits. Activations are recomputed in every step.

    >>> arithmetic_intensity("activation_checkpoints", hidden=2048)
    49152.0
    """
    known(MOVED, kind, "kind")
    if kind == "activation_checkpoints":
        positive(hidden=hidden, checkpoint_interval=checkpoint_interval)
        flop = STEP_FLOP * 12 * hidden**2  # of a layer and token: 12 h^2 parameters
        return flop * checkpoint_interval / (hidden * dict(MOVED)[kind])
    positive(sequence=sequence, batch=batch)
    return STEP_FLOP * sequence * batch / dict(MOVED)[kind]


def efficiency(intensity: float, bandwidth: float, peak_flops: float) -> float:
    """The part of ``peak_flops`` that is reached if nothing overlaps: compute time over compute and copy time."""
    positive(intensity=intensity, bandwidth=bandwidth, peak_flops=peak_flops)
    return intensity * bandwidth / (intensity * bandwidth + peak_flops)


def required_bandwidth(intensity: float, wished: float, peak_flops: float) -> float:
    """Bytes a second that give the ``wished`` efficiency, above 0 and below 1: the inverse of ``efficiency``.

    >>> round(required_bandwidth(arithmetic_intensity("parameters_gradients", 1024, 1), 0.5, 70e12) / 1e9)
    68
    """
    positive(intensity=intensity, peak_flops=peak_flops)
    if not 0 < wished < 1:
        raise ValueError(f"wished is {wished}; give an efficiency above 0 and below 1")
    return wished / (1 - wished) * peak_flops / intensity
