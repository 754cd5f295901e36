"""Past the GPU's memory: a rank's bytes on the device, on the host and in files, and the largest model that fits.

>>> tier_bytes(10_000_000_000 // 8, states="host")  # a rank's shard of 10e9 parameters on 8 ranks
(2500000000, 17500000000, 0)
>>> largest_model(80e9, 512e9, layers=32, window=2, world_size=8, ranks_per_node=8, states="host", parameters="host")
(32000000000, 'host')

The device is the GPU, the host is the CPU's memory, and files are on a disk such as an NVMe drive. Three tiers, each
larger and slower than the one before. Parameters are sharded as in ZeRO-3. ValueError for a placement, a window or a
number that makes no sense.

Ren et al., "ZeRO-Offload" (2021); Rajbhandari et al., "ZeRO-Infinity" (2021).
"""

from ringzero.costs.offload import check_window
from ringzero.costs.page.inputs import known, positive, ranks

TIERS = (("device", 0), ("host", 1), ("file", 2))
FP32 = 4  # bytes of a number of the master
FILE_BLOCK = 4096  # a vector's record in a file takes whole blocks
GENERATIONS = 2  # of every record: the last whole step stays readable while the next is written
BUFFERS = 3  # records on the host at one time: one is read, one is stepped, one is written


def tier_bytes(
    shards: float | list[float],
    states: str = "device",
    parameters: str = "device",
    each: tuple[float, float, float] = (2, 2, 12),
    resident: float = 0,
) -> tuple[float, float, float]:
    """``(device, host, file)`` bytes of one rank under ZeRO-3 with its shard placed in tiers.

    ``shards``: this rank's elements of each sharded vector, or one number for a single vector. ``each``: bytes of
    ``memory.bytes_per_param``. ``states`` places the optimizer's states and the fp32 parameters that it steps (the
    master), ``parameters`` the shard that is gathered: each "device", "host" or "file", and ``parameters`` not above
    ``states`` in that order. Where both are in one tier, an fp32 shard is the master and counts once.

    ``resident``: elements that are whole on the device at one time, the window's layers and what belongs to no layer.

    Files hold the master and the states twice, so that a crash during a write loses nothing. The record of a vector
    is rounded up to 4096 bytes. The host has buffers for three records of the largest vector.

    >>> tier_bytes([1000, 24], states="host")
    (2048, 14336, 0)
    >>> tier_bytes([1000, 24], states="file", parameters="file", each=(4, 4, 8), resident=500)
    (2000, 40960, 32768)
    """
    of_states, of_parameters = _placed(states, parameters)
    sizes = shards if isinstance(shards, (list, tuple)) else [shards]
    for elements in (*sizes, resident):
        if not elements >= 0:
            raise ValueError(f"a size is {elements}; give numbers of elements, 0 or more")
    parameter, gradient, optimizer = _bytes_of(each)
    shard = sum(sizes)
    is_fp32 = parameter >= FP32
    kept = optimizer + FP32 if is_fp32 else optimizer  # the master and the states; in mixed precision `each` has both
    copy = 0 if is_fp32 and of_states == of_parameters else parameter  # the shard, where it is not the master

    used = [parameter * resident, 0, 0]
    used[min(of_states, 1)] += gradient * shard
    if parameters != "file":
        used[of_parameters] += copy * shard
    if states != "file":
        used[of_states] += kept * shard
    else:
        record = kept + copy if parameters == "file" else kept
        used[1] += BUFFERS * _in_blocks(record * max(sizes))
        used[2] = GENERATIONS * sum(_in_blocks(record * size) for size in sizes)
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
    check_window(window, layers)
    if not 1 <= ranks_per_node <= world_size:
        raise ValueError(f"ranks_per_node is {ranks_per_node}; give 1 to {world_size}, the number of ranks")
    if not (host_bytes >= 0 and file_bytes >= 0):
        raise ValueError(f"host_bytes and file_bytes are {host_bytes} and {file_bytes}; give 0 or more")
    limits, sharing = [device_bytes, host_bytes, file_bytes], [1, ranks_per_node, ranks_per_node]

    def full(layer):
        """The first tier that a layer of so many parameters does not fit into, or None."""
        shards = [-(-layer // world_size)] * layers
        used = tier_bytes(shards, states, parameters, each, window * layer)
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
