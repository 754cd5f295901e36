"""The overlap ratios as the Ultra-Scale Playbook prints them, beside ``page.overlap``'s, which are right.

>>> round(zero3_ratio(989e12, 450e9, tokens=1024, world_size=8), 2)  # as printed: it hides
0.94
>>> round(overlap.zero3_ratio(989e12, 450e9, tokens=1024, world_size=8), 2)  # in bytes: half of it is waited for
1.88

Tazi et al. 2025, appendix A3 "Math for compute/communication overlap". What it calls bytes are elements, so each ratio
is half of what 16-bit numbers take, and a quarter of 32 bits; and the ratio of data parallelism carries a count of
parameters that must cancel, since the gradients and the backward pass grow with it alike. Units and errors as in
``costs.page.overlap``.
"""

from ringzero.costs.page import overlap
from ringzero.costs.page.inputs import positive


def data_parallel_ratio(peak_flops: float, bandwidth: float, tokens: float, world_size: int, params: float) -> float:
    """Printed: params / (2 tokens) (N-1)/N F/B. Right: b / (2 tokens) (N-1)/N F/B for b bytes a gradient."""
    positive(params=params)
    return params * overlap.data_parallel_ratio(peak_flops, bandwidth, tokens, world_size, bytes_per_element=1)


def zero3_ratio(peak_flops: float, bandwidth: float, tokens: float, world_size: int) -> float:
    """Printed: 1 / (2 tokens) (N-1)/N F/B. Right: b times that for b bytes a parameter."""
    return overlap.zero3_ratio(peak_flops, bandwidth, tokens, world_size, bytes_per_element=1)


def tensor_parallel_ratio(peak_flops: float, bandwidth: float, hidden: float, tensor_parallel: int) -> float:
    """Printed: (T-1) / (2h) F/B. Right: b times that for b bytes an activation."""
    return overlap.tensor_parallel_ratio(peak_flops, bandwidth, hidden, tensor_parallel, bytes_per_element=1)


def pipeline_parallel_ratio(peak_flops: float, bandwidth: float, hidden: float, layers: float) -> float:
    """Printed: F / (32 h L B). Right: b times that for b bytes an activation."""
    return overlap.pipeline_parallel_ratio(peak_flops, bandwidth, hidden, layers, bytes_per_element=1)
