"""One function a published quantity: a thin adapter from a row's ``inputs`` to ringzero's public functions."""

from ringzero.collectives import ring_all_reduce
from ringzero.costs import alpha_beta as ab

NCCL_NAMES = {"alltoall": "all_to_all"}  # nccl-tests' spelling -> ours


def bus_bandwidth_factor(collective, world_size):
    return ab.bus_bandwidth_factor(NCCL_NAMES.get(collective, collective), world_size)


def algorithm_bandwidth(bytes, seconds, collective=None, world_size=None):
    return ab.algorithm_bandwidth(bytes, seconds) / 1e9


def bus_bandwidth(collective, world_size, bytes, seconds):
    return ab.bus_bandwidth(NCCL_NAMES.get(collective, collective), world_size, bytes, seconds) / 1e9


def bus_from_algorithm_bandwidth(collective, world_size, algorithm_bandwidth):
    return algorithm_bandwidth * bus_bandwidth_factor(collective, world_size)


def all_reduce_lower_bound(world_size):
    return ab.all_reduce_lower_bound(world_size)


def all_reduce_coefficients(algorithm, world_size):
    return list({"ring": ab.ring_all_reduce_coefficients}[algorithm](world_size))


def sent_bytes_per_rank(algorithm, world_size):
    schedule = {"ring": ring_all_reduce}[algorithm](world_size)
    return schedule.bytes_sent(world_size, 1).max() / world_size


def steps(algorithm, world_size):
    return len({"ring": ring_all_reduce}[algorithm](world_size).rounds)


def pipelined_broadcast_seconds(world_size, bytes, bandwidth, chunks, alpha=0.0):
    return ab.seconds(ab.ring_broadcast_coefficients(world_size, chunks), bytes, alpha, 1 / bandwidth)


def pipelined_broadcast_optimal_chunks(world_size, bytes, bandwidth, alpha):
    return ab.best_broadcast_chunks(world_size, bytes, alpha, 1 / bandwidth)


# A quantity, or one algorithm of it ("quantity:algorithm"), is listed here until the package computes it.
# The list only shrinks: a test fails when something on it works.
NOT_BUILT_YET = [
    "activation_bytes",
    "all_reduce_coefficients:rabenseifner",
    "all_reduce_coefficients:recursive_doubling",
    "attention_activation_coefficient",
    "broadcast_coefficients",
    "deepspeed_estimate",
    "dp_communication_volume",
    "dp_overlap_ratio",
    "fp32_adam_training_bytes",
    "gpt_params",
    "hfu",
    "infiniband_gb_per_s_per_direction",
    "llama_params",
    "max_params",
    "mfu",
    "min_tokens_per_device_for_dp_overlap",
    "model_state_bytes",
    "nccl_protocol_payload",
    "nccl_ring_primitives",
    "nvlink_gb_per_s_per_direction",
    "one_bit_adam_volume_reduction",
    "peak_tflops_16bit_dense",
    "powersgd_compression_ratio",
    "selective_recomputation_flops_overhead",
    "selective_recomputation_saving",
    "sent_bytes_per_rank:mesh_2d",
    "sent_bytes_per_rank:rabenseifner",
    "sent_bytes_per_rank:torus_2d",
    "steps:torus_2d",
    "tensor_bytes",
]

QUANTITIES = {
    function.__name__: function
    for function in (
        bus_bandwidth_factor,
        algorithm_bandwidth,
        bus_bandwidth,
        bus_from_algorithm_bandwidth,
        all_reduce_lower_bound,
        all_reduce_coefficients,
        sent_bytes_per_rank,
        steps,
        pipelined_broadcast_seconds,
        pipelined_broadcast_optimal_chunks,
    )
}


def built(quantity, inputs):
    """Whether the package computes this; False for what is listed above, True for the unknown (which then fails)."""
    return quantity not in NOT_BUILT_YET and f"{quantity}:{inputs.get('algorithm')}" not in NOT_BUILT_YET


def evaluate(quantity, inputs):
    """The package's value for a row. Raises NotImplementedError for what is listed above, KeyError for the unknown."""
    if not built(quantity, inputs):
        raise NotImplementedError(f"{quantity} of {inputs} is not built yet; see NOT_BUILT_YET")
    if quantity not in QUANTITIES:
        raise KeyError(f"unknown quantity {quantity!r}; known are {', '.join(QUANTITIES)}")
    return QUANTITIES[quantity](**inputs)
