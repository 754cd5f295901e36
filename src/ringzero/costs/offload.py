"""Past the GPU's memory: bytes on the device, on the host and in files, and the seconds that copies cost.

>>> tier_bytes(10_000_000_000 // 8, states="host")  # a rank's shard of 10e9 parameters on 8 ranks
(2500000000, 17500000000, 0)
>>> largest_model(80e9, 512e9, layers=32, window=2, world_size=8, ranks_per_node=8, states="host", parameters="host")
(32000000000, 'host')
>>> efficiency(arithmetic_intensity("optimizer_states", sequence=2048, batch=2), bandwidth=70e9, peak_flops=71.68e12)
0.5

The device is the GPU, the host is the CPU's memory, and files are on a disk such as an NVMe drive. Three tiers, each
larger and slower than the one before. Parameters are sharded as in ZeRO-3. Sizes are in bytes of one rank, times in
seconds. ValueError for a placement, a window or a number that makes no sense.

Ren et al., "ZeRO-Offload" (2021); Rajbhandari et al., "ZeRO-Infinity" (2021); Sun et al., "STRONGHOLD" (SC 2022).
"""

from ringzero.costs.inputs import known, positive, ranks

TIERS = (("device", 0), ("host", 1), ("file", 2))
FP32 = 4  # bytes of a number of the master
FILE_BLOCK = 4096  # a vector's record in a file takes whole blocks
GENERATIONS = 2  # of every record: the last whole step stays readable while the next is written
BUFFERS = 3  # records on the host at one time: one is read, one is stepped, one is written

STEP_FLOP = 2 + 2 + 4  # for a parameter and token: forward, recomputation, backward
MOVED = (  # bytes moved in a step (ZeRO-Infinity, section 4.1)
    ("parameters_gradients", 2 * 4),  # a parameter, 16 bits: for forward, recomputation, backward; its gradient once
    ("optimizer_states", 2 * 16),  # a parameter: fp32 parameter, gradient, momentum and variance, read and written
    ("activation_checkpoints", 2 * 2),  # a number of a layer's input, 16 bits: written and read
)


# ---- bytes by tier


def tier_bytes(
    shards: float | list[float],
    states: str = "device",
    parameters: str = "device",
    each: tuple[float, float, float] = (2, 2, 12),
    resident: float = 0,
    in_flight: float = 0,
    largest_vector: float | None = None,
    delayed: bool = False,
) -> tuple[float, float, float]:
    """``(device, host, file)`` bytes of one rank under ZeRO-3 with its shard placed in tiers.

    ``shards``: this rank's elements of each sharded vector, or one number for a single vector. ``each``: bytes of
    ``memory.bytes_per_param``. ``states`` places the optimizer's states and the fp32 parameters that it steps (the
    master), ``parameters`` the shard that is gathered: each "device", "host" or "file", and ``parameters`` not above
    ``states`` in that order. Where both are in one tier, an fp32 shard is the master and counts once.

    ``resident``: elements that are whole on the device at one time, the window's layers and what belongs to no layer.
    ``in_flight``: elements of reduced gradients that have not left the device yet; they count there only if the
    states are elsewhere. A gradient keeps its type on the host. With ``delayed`` it is there twice: the last step's may
    still be in use while the next one's arrives.

    Files hold the master and the states twice, so that a crash during a write loses nothing. The record of a vector
    is rounded up to 4096 bytes. The host has buffers for three records of the ``largest_vector`` (in elements of this
    rank; None: the largest of ``shards``).

    >>> tier_bytes([1000, 24], states="host")
    (2048, 14336, 0)
    >>> tier_bytes([1000, 24], states="file", parameters="file", each=(4, 4, 8), resident=500)
    (2000, 40960, 32768)
    """
    of_states, of_parameters = _placed(states, parameters)
    sizes = shards if isinstance(shards, (list, tuple)) else [shards]
    largest = max(sizes) if largest_vector is None else largest_vector
    for elements in list(sizes) + [resident, in_flight, largest]:
        if not elements >= 0:
            raise ValueError(f"a size is {elements}; give numbers of elements, 0 or more")
    parameter, gradient, optimizer = _bytes_of(each)
    shard = sum(sizes)
    is_fp32 = parameter >= FP32
    kept = optimizer + FP32 if is_fp32 else optimizer  # the master and the states; in mixed precision `each` has both
    copy = 0 if is_fp32 and of_states == of_parameters else parameter  # the shard, where it is not the master

    used = [parameter * resident, 0, 0]
    if states != "device":
        used[0] += gradient * in_flight
    used[min(of_states, 1)] += gradient * shard * (2 if delayed and states != "device" else 1)
    if parameters != "file":
        used[of_parameters] += copy * shard
    if states != "file":
        used[of_states] += kept * shard
    else:
        record = kept + copy if parameters == "file" else kept
        used[1] += BUFFERS * _in_blocks(record * largest)
        used[2] = GENERATIONS * sum([_in_blocks(record * size) for size in sizes])
    return tuple(used)


def largest_model(
    device_bytes: float,
    host_bytes: float = 0,
    file_bytes: float = 0,
    layers: int = 1,
    window: int = 1,
    world_size: int = 1,
    ranks_per_node: int = 1,
    states: str = "device",
    parameters: str = "device",
    each: tuple[float, float, float] = (2, 2, 12),
    delayed: bool = False,
) -> tuple[int, str]:
    """The largest model that fits, as ``(parameters, tier)``: the tier is the one that has no room for more.

    The inverse of ``tier_bytes`` for ``layers`` equal layers, each one vector that is sharded over ``world_size``
    ranks, of which ``window`` are whole on the device. ``device_bytes`` are those of one GPU. ``host_bytes`` and
    ``file_bytes`` are those of a node, which its ``ranks_per_node`` ranks share. Activations are not counted: take
    them off ``device_bytes``. ``(0, tier)`` where not even one parameter a layer fits. The search ends at 2^51
    parameters a layer, with the tier "none" if all of that fits.

    >>> largest_model(16e9, layers=10)  # all on one GPU of 16 GB, one layer gathered
    (987654320, 'device')
    """
    positive(device_bytes=device_bytes)
    ranks(world_size)
    _check_window(window, layers)
    if not 1 <= ranks_per_node <= world_size:
        raise ValueError(f"ranks_per_node is {ranks_per_node}; give 1 to {world_size}, the number of ranks")
    if not (host_bytes >= 0 and file_bytes >= 0):
        raise ValueError(f"host_bytes and file_bytes are {host_bytes} and {file_bytes}; give 0 or more")
    limits, sharing = [device_bytes, host_bytes, file_bytes], [1, ranks_per_node, ranks_per_node]

    def full(layer):
        """The first tier that a layer of so many parameters does not fit into, or None."""
        shards = [-(-layer // world_size)] * layers
        used = tier_bytes(shards, states, parameters, each, window * layer, delayed=delayed)
        return next((name for name, tier in TIERS if used[tier] * sharing[tier] > limits[tier]), None)

    layer = 0
    for bit in range(50, -1, -1):
        if full(layer + 2**bit) is None:
            layer += 2**bit
    return layers * layer, full(layer + 1) or "none"


def _placed(states, parameters):
    """The tiers' places in ``TIERS``."""
    known(TIERS, states, "states")
    known(TIERS, parameters, "parameters")
    of_states, of_parameters = dict(TIERS)[states], dict(TIERS)[parameters]
    if of_parameters > of_states:
        raise ValueError(f"parameters is {parameters!r} and states is {states!r}; place states as far away or farther")
    return of_states, of_parameters


def _bytes_of(each):
    parameter, gradient, optimizer = each
    positive(parameter=parameter)
    if not (gradient >= 0 and optimizer >= 0):
        raise ValueError(f"each is {each}; give the bytes of a parameter, a gradient and the optimizer's states")
    return parameter, gradient, optimizer


def _in_blocks(size):
    return -(-size // FILE_BLOCK) * FILE_BLOCK


# ---- the optimizer's step on the host


def adam_seconds_per_param(memory_bandwidth: float, gradient_bytes: float = 4, parameter_bytes: float = 0) -> float:
    """Seconds that Adam on a CPU needs for one parameter if it is bound by the host's memory.

    Read and write three fp32 numbers (master, momentum, variance), read the gradient, and write ``parameter_bytes``
    for a 16-bit copy of the parameter. ``memory_bandwidth`` is in bytes a second, reads and writes together.
    """
    positive(memory_bandwidth=memory_bandwidth)
    return (2 * 3 * FP32 + gradient_bytes + parameter_bytes) / memory_bandwidth


def update_seconds(
    params: float,
    link_bandwidth: float,
    adam_seconds_per_param: float,
    gradient_bytes: float = 2,
    parameter_bytes: float = 2,
    pipelined: bool = True,
) -> float:
    """Seconds of the update phase of one rank whose optimizer's states are on the host.

    ``params`` gradients go to the host, the CPU steps Adam, ``params`` parameters come back. ``link_bandwidth`` is
    that of one direction in bytes a second; the two directions do not slow each other down, as on PCIe. Pipelined,
    which means vector by vector, the phase takes as long as the slowest of the three; otherwise their sum.

    >>> update_seconds(1e9, link_bandwidth=25e9, adam_seconds_per_param=0.5e-9)
    0.5
    >>> round(update_seconds(1e9, link_bandwidth=25e9, adam_seconds_per_param=0.5e-9, pipelined=False), 2)
    0.66
    """
    positive(params=params, link_bandwidth=link_bandwidth, adam_seconds_per_param=adam_seconds_per_param)
    positive(gradient_bytes=gradient_bytes, parameter_bytes=parameter_bytes)
    phases = [
        params * gradient_bytes / link_bandwidth,
        params * adam_seconds_per_param,
        params * parameter_bytes / link_bandwidth,
    ]
    return max(phases) if pipelined else sum(phases)


def offload_step_seconds(
    params: float,
    compute_seconds: float,
    link_bandwidth: float,
    adam_seconds_per_param: float,
    gradient_bytes: float = 2,
    parameter_bytes: float = 2,
    pipelined: bool = True,
    delayed: bool = False,
) -> float:
    """Seconds of a whole step: forward and backward (``compute_seconds``), then the ``update_seconds``.

    ``delayed``: the forward and backward pass of the next step run during the update, with parameters one step old
    (Ren et al. 2021, section 5.2). The step then takes as long as the slower of the two.
    """
    positive(compute_seconds=compute_seconds)
    update = update_seconds(params, link_bandwidth, adam_seconds_per_param, gradient_bytes, parameter_bytes, pipelined)
    return max(compute_seconds, update) if delayed else compute_seconds + update


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
    _check_window(window, len(copies))
    copied, done = 0.0, [0.0]  # done[i + 1]: when layer i has been computed
    for layer in range(len(copies)):
        slot_is_free = done[layer + 1 - window] if layer >= window else 0.0
        copied = max(copied, slot_is_free) + copies[layer]
        done.append(max(copied, done[-1]) + computes[layer])
    return done[-1]


def forward_backward_seconds(copies: list[float], forwards: list[float], backwards: list[float], window: int) -> float:
    """Seconds of a forward and a backward pass. The backward pass takes the layers in the opposite order.

    The last ``window`` layers are still on the device when the forward pass ends, so the backward pass copies the
    others only. Lists have one number a layer, in the order of the forward pass.
    """
    _check_layers(copies, forwards)
    _check_layers(copies, backwards)
    forward = window_seconds(copies, forwards, window)
    again = [0] * window + list(reversed(copies))[window:]
    return forward + window_seconds(again, list(reversed(backwards)), window)


def smallest_window(copies: list[float], forwards: list[float], backwards: list[float], tolerance: float = 0.01) -> int:
    """The fewest layers on the device with which a step takes at most 1 + ``tolerance`` times the best time.

    >>> smallest_window([1] * 8, forwards=[2] * 8, backwards=[4] * 8)
    2
    """
    if not tolerance >= 0:
        raise ValueError(f"tolerance is {tolerance}; give the part of the best time that may be lost, 0 or more")
    layers = len(copies)
    _check_layers(copies, forwards)
    seconds = [forward_backward_seconds(copies, forwards, backwards, k) for k in range(1, layers + 1)]
    best = min(seconds)
    return next(k for k in range(1, layers + 1) if seconds[k - 1] <= (1 + tolerance) * best)


def _check_window(window, layers):
    positive(layers=layers)
    if not 1 <= window <= layers:
        raise ValueError(f"window is {window}; give 1 to {layers}, the number of layers")


def _check_layers(copies, computes):
    if len(copies) != len(computes) or not copies:
        raise ValueError(f"{len(copies)} copies and {len(computes)} computations; give one of each for every layer")
    for seconds in list(copies) + list(computes):
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
