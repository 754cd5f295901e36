"""Will communication hide behind computation? Seconds of one over seconds of the other: below 1 it can.

>>> round(data_parallel_ratio(peak_flops=989e12, bandwidth=450e9, tokens=4096, world_size=8), 2)
0.47
>>> round(min_tokens_for_data_parallel(peak_flops=989e12, bandwidth=450e9, world_size=8))
1923

``peak_flops`` is in FLOP/s of one GPU; give what your programs reach of it for a realistic answer. ``bandwidth`` is in
bytes a second that one GPU sends while it receives as much (busbw). ``tokens`` are those of one GPU in one step.
Latency is left out. ValueError for an argument that is not above 0.

The idea is that of the Ultra-Scale Playbook (Tazi et al. 2025, appendix), whose own formulas count elements where they
say bytes; here every size is in bytes.
"""

from ringzero.costs.inputs import positive, ranks


def data_parallel_ratio(
    peak_flops: float, bandwidth: float, tokens: float, world_size: int, bytes_per_element: float = 2
) -> float:
    """All-reduce of the gradients over the backward pass: b (N-1) F / (2 N tokens B).

    2b Psi (N-1)/N bytes against 4 Psi tokens FLOP: the model's size cancels. ``bytes_per_element`` is a gradient's.
    """
    positive(tokens=tokens)
    return min_tokens_for_data_parallel(peak_flops, bandwidth, world_size, bytes_per_element) / tokens


def min_tokens_for_data_parallel(
    peak_flops: float, bandwidth: float, world_size: int | None = None, bytes_per_element: float = 2
) -> float:
    """Tokens a GPU needs in a step so that the all-reduce fits behind the backward pass. None: very many ranks."""
    positive(peak_flops=peak_flops, bandwidth=bandwidth, bytes_per_element=bytes_per_element)
    others = 1.0 if world_size is None else (ranks(world_size) - 1) / world_size
    return bytes_per_element / 2 * others * peak_flops / bandwidth


def zero3_ratio(
    peak_flops: float, bandwidth: float, tokens: float, world_size: int, bytes_per_element: float = 2
) -> float:
    """All-gather of a layer's parameters over the forward pass of the layer before: b (N-1) F / (2 N tokens B).

    b p (N-1)/N bytes against 2 p tokens FLOP. In the backward pass an all-gather and a reduce-scatter stand against
    4 p tokens FLOP, which is the same ratio. Data parallelism has this ratio too, though only in its backward pass.
    """
    return data_parallel_ratio(peak_flops, bandwidth, tokens, world_size, bytes_per_element)


def min_tokens_for_zero3(
    peak_flops: float, bandwidth: float, world_size: int | None = None, bytes_per_element: float = 2
) -> float:
    """Tokens a GPU needs in a step so that the layers' parameters arrive in time. None: very many ranks."""
    return min_tokens_for_data_parallel(peak_flops, bandwidth, world_size, bytes_per_element)


def tensor_parallel_ratio(
    peak_flops: float, bandwidth: float, hidden: float, tensor_parallel: int, bytes_per_element: float = 2
) -> float:
    """All-gather of the activations over the next product, with an h x h matrix: b (T-1) F / (2 h B).

    b tokens h (T-1)/T bytes against 2 tokens h^2 / T FLOP: tokens cancel, so a larger batch does not help.
    """
    positive(hidden=hidden)
    return min_hidden_for_tensor_parallel(peak_flops, bandwidth, tensor_parallel, bytes_per_element) / hidden


def min_hidden_for_tensor_parallel(
    peak_flops: float, bandwidth: float, tensor_parallel: int, bytes_per_element: float = 2
) -> float:
    """The hidden size from which on the all-gather fits behind the next product."""
    positive(peak_flops=peak_flops, bandwidth=bandwidth, bytes_per_element=bytes_per_element)
    return bytes_per_element / 2 * (ranks(tensor_parallel) - 1) * peak_flops / bandwidth


def pipeline_parallel_ratio(
    peak_flops: float,
    bandwidth: float,
    hidden: float,
    layers: float,
    bytes_per_element: float = 2,
    squares_per_layer: float = 16,
) -> float:
    """Sending the activations over the next stage's forward pass: b F / (2 * 16 h L B), for L layers a stage.

    b tokens h bytes against 2 tokens 16 h^2 L FLOP: tokens cancel. ``squares_per_layer`` is a layer's parameters in
    h^2: 16 with a gated MLP of width 4h, 12 without the gate.
    """
    positive(layers=layers)
    return min_layers_for_pipeline(peak_flops, bandwidth, hidden, bytes_per_element, squares_per_layer) / layers


def min_layers_for_pipeline(
    peak_flops: float, bandwidth: float, hidden: float, bytes_per_element: float = 2, squares_per_layer: float = 16
) -> float:
    """Layers a stage needs (a real number) so that sending its activations fits behind the next stage's work."""
    positive(peak_flops=peak_flops, bandwidth=bandwidth, hidden=hidden)
    positive(bytes_per_element=bytes_per_element, squares_per_layer=squares_per_layer)
    return bytes_per_element * peak_flops / (2 * squares_per_layer * hidden * bandwidth)
