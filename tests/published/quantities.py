"""One function a published quantity: a thin adapter from a row's ``inputs`` to ringzero's public functions.

What is one multiplication or division has no function in the library, and stands here.
"""

from math import prod

import numpy as np

from ringzero.collectives import ALGORITHMS
from ringzero.costs import (
    compression,
    deepspeed,
    experts,
    faults,
    gossip,
    local,
    muon,
    nccl,
    nccl_tuner,
    offload,
    pipeline,
    two_level,
    zero3_with_tensor,
)
from ringzero.costs.page import alpha_beta as ab
from ringzero.costs.page import hardware, memory, overlap, throughput, transformer
from ringzero.costs.page.coefficients import COEFFICIENTS
from ringzero.network import coefficients

NCCL_NAMES = {"alltoall": "all_to_all"}  # nccl-tests' spelling -> ours
MPICH_NAMES = {
    "reduce_scatter_allgather": "rabenseifner",
    "scatter_ring_allgather": "scatter_ring",
    "scatter_recursive_doubling_allgather": "scatter_bruck",
}
TOPOLOGIES = {
    "cycle": "ring",
    "fully_connected": "complete",
    "path": "chain",
    "line": "chain",
    "exponential": "static_exponential",
    "one_peer": "one_peer_exponential",
    "torus_2d": "torus",
    "2d_torus": "torus",
    "grid_2d": "grid",
    "2d_grid": "grid",
    "mesh": "grid",
}
MIXING_WEIGHTS = {"uniform_over_closed_neighbourhood": "uniform", "metropolis_hastings": "metropolis"}


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
    return list(coefficients(ALGORITHMS["all_reduce"][MPICH_NAMES.get(algorithm, algorithm)](world_size)))


def broadcast_coefficients(algorithm, world_size):
    return list(coefficients(ALGORITHMS["broadcast"][MPICH_NAMES.get(algorithm, algorithm)](world_size)))


def all_reduce_schedule(algorithm, world_size=None, shape=None):
    options = {} if shape is None else {"shape": tuple(shape)}
    generator = ALGORITHMS["all_reduce"][MPICH_NAMES.get(algorithm, algorithm)]
    return generator(world_size or prod(shape), **options)


def sent_bytes_per_rank(algorithm, world_size=None, shape=None):
    schedule = all_reduce_schedule(algorithm, world_size, shape)
    sent = np.zeros(schedule.world_size)
    for src, _, share, _, times in schedule.traffic():
        np.add.at(sent, src, share * times)
    return sent.max()


def steps(algorithm, world_size=None, shape=None):
    return len(all_reduce_schedule(algorithm, world_size, shape).rounds)


def nccl_ring_primitives(collective, world_size, primitive=None):
    names = nccl.ring_primitives(NCCL_NAMES.get(collective, collective), world_size)
    return len(names) if primitive is None else names.count(primitive)


def nccl_protocol_payload(protocol, slot_kib):
    return nccl.payload_fraction(protocol) * slot_kib


def pipelined_broadcast_seconds(world_size, bytes, bandwidth, chunks, alpha=0.0):
    return ab.seconds(COEFFICIENTS["broadcast"]["ring"](world_size, chunks), bytes, alpha, 1 / bandwidth)


def pipelined_broadcast_optimal_chunks(world_size, bytes, bandwidth, alpha):
    return ab.best_chunks(COEFFICIENTS["broadcast"]["ring"], world_size, bytes, alpha, 1 / bandwidth)


def peak_tflops_16bit_dense(gpu):
    return hardware.peak_flops(gpu) / 1e12


def nvlink_gb_per_s_per_direction(gpu):
    return hardware.nvlink(gpu)


def infiniband_gb_per_s_per_direction(generation):
    return hardware.infiniband(generation)


def hbm_gb(gpu):
    return hardware.gpu(gpu)["memory_gb"]


def hbm_tb_per_s(gpu):
    return hardware.gpu(gpu)["memory_gb_per_s"] / 1e3


def pcie_gb_per_s_per_direction(generation, lanes=16):
    return hardware.pcie(generation, lanes)


def mfu(iteration_seconds, gpus, peak_flops, **step):
    return 100 * transformer.utilization(transformer.model_flops(**step), iteration_seconds, gpus, peak_flops)


def hfu(iteration_seconds, gpus, peak_flops, recomputation="selective", **step):
    flops = transformer.hardware_flops(recomputation=recomputation, **step)
    return 100 * transformer.utilization(flops, iteration_seconds, gpus, peak_flops)


def selective_recomputation_flops_overhead(batch=1, **step):
    return 100 * (transformer.hardware_flops(batch, **step) / transformer.model_flops(batch, **step) - 1)


def tensor_bytes(elements, bytes_per_element):
    return elements * bytes_per_element / 1e9


def _each(optimizer_bytes_per_param, fp32_gradient_accumulation):
    parameter, gradient, _ = memory.bytes_per_param(fp32_gradient_accumulation=fp32_gradient_accumulation)
    return parameter, gradient, optimizer_bytes_per_param


def model_state_bytes(params, stage, world_size, optimizer_bytes_per_param=12, fp32_gradient_accumulation=False):
    each = _each(optimizer_bytes_per_param, fp32_gradient_accumulation)
    return memory.model_state_bytes(params, stage, world_size, each) / 1e9


def max_params(
    memory_bytes,
    stage,
    world_size,
    tensor_parallel=1,
    optimizer_bytes_per_param=12,
    fp32_gradient_accumulation=False,
):
    each = _each(optimizer_bytes_per_param, fp32_gradient_accumulation)
    return memory.max_params(memory_bytes, stage, world_size, tensor_parallel, each) / 1e9


def fp32_adam_training_bytes(params):
    return memory.model_state_bytes(params, each=memory.bytes_per_param("adam", mixed_precision=False)) / 1e9


def dp_communication_volume(stage, world_size=None):
    return memory.communication_elements(1e12, stage, world_size) / 1e12


def deepspeed_estimate(case, params, largest_layer_params=None, gpus_per_node=1, nodes=1):
    """A case is z2_gpu[_offload], z2_cpu (offloaded), or z3_{gpu,cpu}_{what is offloaded}[_init{0,1}]."""
    stage, where, *rest = case.split("_")
    if stage == "z2":
        offload = "optimizer" if where == "cpu" or rest == ["offload"] else "none"
        both = deepspeed.zero2_bytes(params, gpus_per_node, nodes, offload)
    else:
        zero_init = "init0" not in rest
        offload = {"none": "none", "opt": "optimizer", "all": "all"}[rest[0]]
        both = deepspeed.zero3_bytes(params, largest_layer_params, gpus_per_node, nodes, offload, zero_init)
    return both[("cpu", "gpu").index(where)] / 2**30


def selective_recomputation_saving(heads, sequence, hidden):
    return 100 * memory.selective_recomputation_saving(heads, sequence, hidden)


def dp_overlap_ratio(**step):
    return overlap.data_parallel_ratio(**step)


def min_tokens_per_device_for_dp_overlap(**hardware):
    return overlap.min_tokens_for_data_parallel(**hardware)


def powersgd_compression_ratio(model, rank):
    shapes = {"resnet18-cifar10": compression.resnet18_cifar10_shapes}[model]()
    return compression.powersgd_compression_ratio(shapes, rank)


def offload_arithmetic_intensity(kind, **step):
    return offload.arithmetic_intensity(kind, **step)


def offload_efficiency(intensity, bandwidth, peak_flops):
    return offload.efficiency(intensity, bandwidth, peak_flops)


def young_daly_interval_seconds(checkpoint_seconds, mtbf_seconds):
    return faults.young_daly_interval(checkpoint_seconds, mtbf_seconds)


def job_mttf_hours(gpus, gpus_per_node, failures_per_1000_node_days):
    return faults.job_mttf(gpus, gpus_per_node, failures_per_1000_node_days)


def gossip_spectral_gap(topology, nodes=None, weights="uniform", shape=None, rows=None, columns=None):
    """Without ``nodes`` the shape says how many there are; it may be given as ``rows`` and ``columns``."""
    sides = shape
    if rows or columns:
        sides = rows or nodes // columns, columns or nodes // rows
    name = TOPOLOGIES.get(topology, topology)
    return gossip.spectral_gap(name, nodes or prod(sides), MIXING_WEIGHTS.get(weights, weights), sides)


def muon_flop_overhead(steps, width, batch_tokens):
    return muon.flop_overhead(steps, width, batch_tokens)


def peak_tflops_from_clock(clock_hz, fma_per_tensor_core_per_cycle, tensor_cores):
    return 2 * fma_per_tensor_core_per_cycle * tensor_cores * clock_hz / 1e12


def hardware_intensity(peak_flops, bandwidth):
    return transformer.ridge_point(peak_flops, bandwidth)


def mfu_from_tokens_per_second(tokens_per_second, gpus, peak_flops, **model):
    return 100 * throughput.utilization(throughput.model_flops_per_token(**model), tokens_per_second, gpus, peak_flops)


def hfu_from_tokens_per_second(tokens_per_second, gpus, peak_flops, **model):
    return 100 * throughput.utilization(
        throughput.hardware_flops_per_token(**model), tokens_per_second, gpus, peak_flops
    )


def model_tflops_from_tokens_per_second(
    layers, hidden, sequence, tokens_per_second_per_gpu, causal_attention=True, gated=True, **model
):
    params = throughput.matmul_params(layers, hidden, gated=gated, **model)
    flops = throughput.model_flops_per_token(params, layers, hidden, sequence, causal_attention)
    return flops * tokens_per_second_per_gpu / 1e12


def megatron_tflops_per_gpu(iteration_seconds, gpus, **step):
    flops = transformer.hardware_flops(recomputation="full", **step)
    return transformer.utilization(flops, iteration_seconds, gpus, peak_flops=1e12)


def megatron_training_days(tokens, gpus, achieved_flops, sequence, **model):
    a_sequence = transformer.hardware_flops(batch=1, sequence=sequence, recomputation="full", **model)
    return a_sequence / sequence * tokens / (gpus * achieved_flops) / throughput.DAY


def training_days(params, tokens, devices, achieved_flops, flops_per_param_token=6):
    return flops_per_param_token * params * tokens / (devices * achieved_flops) / throughput.DAY


def fraction_of_peak(achieved_flops, peak_flops):
    return 100 * transformer.utilization(achieved_flops, 1.0, 1, peak_flops)


def pipeline_bubble_fraction(stages, microbatches, virtual_stages=1, of="ideal"):
    idle = {"ideal": pipeline.bubble_over_ideal, "total": pipeline.bubble_fraction}[of]
    return 100 * idle(stages, microbatches, virtual_stages)


def tokens_per_device(global_tokens, devices):
    return global_tokens / devices


def tokens_per_second_per_gpu(tokens_per_iteration, iteration_seconds, gpus):
    return tokens_per_iteration / iteration_seconds / gpus


def min_tokens_small_dp_overlap(peak_flops, bandwidth, groups):
    return overlap.min_tokens_for_data_parallel(peak_flops, bandwidth, groups)


def max_tensor_parallel_degree(**machine):
    return overlap.max_tensor_parallel_degree(**machine) - 1  # the book has all T shards sent, not T - 1


def mixed_fsdp_tp_min_tokens(ffn, intensity, axes_product):
    return zero3_with_tensor.min_tokens_for_mixed(intensity, zero_bandwidth=axes_product, tensor_bandwidth=1, ffn=ffn)


def optimal_fsdp_degree(tokens, ffn, devices, axes_ratio):
    return zero3_with_tensor.best_zero_degree(tokens, ffn, devices, zero_bandwidth=axes_ratio, tensor_bandwidth=1)


def all_gather_seconds(bytes, world_size, bandwidth):
    return ab.seconds(COEFFICIENTS["all_gather"]["ring"](world_size), bytes, alpha=0.0, beta=1 / bandwidth)


def effective_all_gather_bandwidth(world_size, bandwidth):
    return ab.algorithm_bandwidth(1, all_gather_seconds(1, world_size, bandwidth)) / 1e9


def nvlink_gb_per_s_from_links(gb_per_s_per_lane, lanes, links):
    return gb_per_s_per_lane * lanes * links


def training_days_from_throughput(tokens, tokens_per_second):
    return tokens / tokens_per_second / throughput.DAY


def days_from_gpu_hours(gpu_hours, gpus):
    return gpu_hours / gpus / 24


def parallel_world_size(data_parallel=1, tensor_parallel=1, pipeline_parallel=1, context_parallel=1):
    return data_parallel * tensor_parallel * pipeline_parallel * context_parallel


def global_batch_sequences(micro_batch, accumulation, gpus, **degrees):
    """``degrees`` are those of ``parallel_world_size``, but for the data-parallel one."""
    return micro_batch * accumulation * gpus // parallel_world_size(**degrees)


def global_batch_tokens(micro_batch, accumulation, data_parallel, sequence):
    return micro_batch * accumulation * data_parallel * sequence


def min_tokens_moe_dp_overlap(**machine):
    return experts.min_tokens_for_moe_data_parallel(**machine)


def low_communication_terabytes(data_parallel_terabytes, **how):
    return data_parallel_terabytes / local.low_communication_reduction(**how)


def _spelt(name, names):
    """The one of ``names`` that ``name`` spells in other letters: "NVLSTree" is "nvls_tree"."""
    plain = name.replace("_", "").replace(" ", "").lower()
    return next((key for key in names if key.replace("_", "").lower() == plain), name)


def nccl_tuning_constant(table, algorithm=None, protocol=None, link=None, gpu=None, nodes=1):
    if gpu is not None:
        generation = _spelt(gpu, nccl_tuner.GENERATIONS)
        return nccl_tuner.bandwidth_limit(table, generation, nodes) / 1e9
    names = _spelt(algorithm, nccl_tuner.BASE_LATENCY), _spelt(protocol, nccl_tuner.PROTOCOLS)
    if table == "base_latency":
        return nccl_tuner.base_latency(*names) * 1e6
    return nccl_tuner.hop_latency(*names, _spelt(link, nccl_tuner.HOP_LATENCY)) * 1e6


def nccl_single_node_latency_us(collective, algorithm, protocol, world_size, link="nvlink"):
    names = _spelt(algorithm, nccl_tuner.BASE_LATENCY), _spelt(protocol, nccl_tuner.PROTOCOLS)
    place = _spelt(link, nccl_tuner.HOP_LATENCY)
    return nccl_tuner.latency(collective, *names, world_size, link=place) * 1e6


QUANTITIES = {
    function.__name__: function
    for function in (
        bus_bandwidth_factor,
        algorithm_bandwidth,
        bus_bandwidth,
        bus_from_algorithm_bandwidth,
        all_reduce_lower_bound,
        all_reduce_coefficients,
        broadcast_coefficients,
        sent_bytes_per_rank,
        steps,
        pipelined_broadcast_seconds,
        pipelined_broadcast_optimal_chunks,
        nccl_ring_primitives,
        nccl_protocol_payload,
        peak_tflops_16bit_dense,
        nvlink_gb_per_s_per_direction,
        infiniband_gb_per_s_per_direction,
        pcie_gb_per_s_per_direction,
        hbm_gb,
        hbm_tb_per_s,
        memory.activation_bytes,
        memory.attention_activation_coefficient,
        deepspeed_estimate,
        dp_communication_volume,
        dp_overlap_ratio,
        fp32_adam_training_bytes,
        gossip_spectral_gap,
        transformer.gpt_params,
        hfu,
        job_mttf_hours,
        transformer.llama_params,
        local.low_communication_reduction,
        low_communication_terabytes,
        max_params,
        mfu,
        min_tokens_per_device_for_dp_overlap,
        model_state_bytes,
        muon_flop_overhead,
        muon.newton_schulz_flops,
        offload_arithmetic_intensity,
        offload_efficiency,
        compression.one_bit_adam_volume_reduction,
        powersgd_compression_ratio,
        selective_recomputation_flops_overhead,
        selective_recomputation_saving,
        tensor_bytes,
        two_level.zeropp_cross_node_volume,
        young_daly_interval_seconds,
        peak_tflops_from_clock,
        nvlink_gb_per_s_from_links,
        hardware_intensity,
        mfu_from_tokens_per_second,
        hfu_from_tokens_per_second,
        model_tflops_from_tokens_per_second,
        megatron_tflops_per_gpu,
        megatron_training_days,
        training_days,
        fraction_of_peak,
        pipeline_bubble_fraction,
        global_batch_sequences,
        global_batch_tokens,
        parallel_world_size,
        tokens_per_device,
        tokens_per_second_per_gpu,
        min_tokens_small_dp_overlap,
        max_tensor_parallel_degree,
        mixed_fsdp_tp_min_tokens,
        optimal_fsdp_degree,
        all_gather_seconds,
        effective_all_gather_bandwidth,
        days_from_gpu_hours,
        nccl_tuning_constant,
        nccl_single_node_latency_us,
        training_days_from_throughput,
        min_tokens_moe_dp_overlap,
    )
}


def evaluate(quantity, inputs):
    """The package's value for a row. Raises KeyError for a quantity that is not known."""
    if quantity not in QUANTITIES:
        raise KeyError(f"unknown quantity {quantity!r}; known are {', '.join(QUANTITIES)}")
    return QUANTITIES[quantity](**inputs)
