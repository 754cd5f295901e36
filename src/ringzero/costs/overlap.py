"""Will communication hide behind computation? Seconds of one over seconds of the other: below 1 it can.

>>> round(data_parallel_ratio(peak_flops=989e12, bandwidth=450e9, tokens=4096, world_size=8), 2)
0.47
>>> round(min_tokens_for_data_parallel(peak_flops=989e12, bandwidth=450e9, world_size=8))
1923

``peak_flops`` is in FLOP/s of one GPU: give the part that you reach of it for a sober answer. ``bandwidth`` is in
bytes a second that one GPU sends while it receives as much (busbw). ``tokens`` are those of one GPU in one step.
Latency is left out.

The idea is that of the Ultra-Scale Playbook (Tazi et al. 2025, appendix), whose own formulas count elements where they
say bytes; here every size is in bytes.
"""


def data_parallel_ratio(peak_flops, bandwidth, tokens, world_size, bytes_per_element=2):
    """All-reduce of the gradients over the backward pass: b (N-1) F / (2 N tokens B).

    2b Psi (N-1)/N bytes against 4 Psi tokens FLOP: the model's size cancels. ``bytes_per_element`` is a gradient's.
    """
    _positive(tokens=tokens)
    return min_tokens_for_data_parallel(peak_flops, bandwidth, world_size, bytes_per_element) / tokens


def min_tokens_for_data_parallel(peak_flops, bandwidth, world_size=None, bytes_per_element=2):
    """Tokens a GPU needs in a step so that the all-reduce fits behind the backward pass. None: very many ranks."""
    _positive(peak_flops=peak_flops, bandwidth=bandwidth, bytes_per_element=bytes_per_element)
    others = 1.0 if world_size is None else (_ranks(world_size) - 1) / world_size
    return bytes_per_element / 2 * others * peak_flops / bandwidth


def zero3_ratio(peak_flops, bandwidth, tokens, world_size, bytes_per_element=2):
    """All-gather of a layer's parameters over the forward pass of the layer before: b (N-1) F / (2 N tokens B).

    b p (N-1)/N bytes against 2 p tokens FLOP. Backward, an all-gather and a reduce-scatter meet 4 p tokens FLOP: the
    same ratio. It is that of data parallelism as well, which has nothing to send during its forward pass.
    """
    return data_parallel_ratio(peak_flops, bandwidth, tokens, world_size, bytes_per_element)


def min_tokens_for_zero3(peak_flops, bandwidth, world_size=None, bytes_per_element=2):
    """Tokens a GPU needs in a step so that the layers' parameters arrive in time. None: very many ranks."""
    return min_tokens_for_data_parallel(peak_flops, bandwidth, world_size, bytes_per_element)


def tensor_parallel_ratio(peak_flops, bandwidth, hidden, tensor_parallel, bytes_per_element=2):
    """All-gather of the activations over the next product, with an h x h matrix: b (T-1) F / (2 h B).

    b tokens h (T-1)/T bytes against 2 tokens h^2 / T FLOP: tokens cancel, so a larger batch does not help.
    """
    _positive(hidden=hidden)
    return min_hidden_for_tensor_parallel(peak_flops, bandwidth, tensor_parallel, bytes_per_element) / hidden


def min_hidden_for_tensor_parallel(peak_flops, bandwidth, tensor_parallel, bytes_per_element=2):
    """The hidden size from which on the all-gather fits behind the next product."""
    _positive(peak_flops=peak_flops, bandwidth=bandwidth, bytes_per_element=bytes_per_element)
    return bytes_per_element / 2 * (_ranks(tensor_parallel) - 1) * peak_flops / bandwidth


def pipeline_parallel_ratio(peak_flops, bandwidth, hidden, layers, bytes_per_element=2, squares_per_layer=16):
    """Sending the activations over the next stage's forward pass: b F / (2 * 16 h L B), for L layers a stage.

    b tokens h bytes against 2 tokens 16 h^2 L FLOP: tokens cancel. ``squares_per_layer`` is a layer's parameters in
    h^2: 16 with a gated MLP of width 4h, 12 without the gate.
    """
    _positive(layers=layers)
    return min_layers_for_pipeline(peak_flops, bandwidth, hidden, bytes_per_element, squares_per_layer) / layers


def min_layers_for_pipeline(peak_flops, bandwidth, hidden, bytes_per_element=2, squares_per_layer=16):
    """Layers a stage needs (a real number) so that sending its activations fits behind the next stage's work."""
    _positive(peak_flops=peak_flops, bandwidth=bandwidth, hidden=hidden)
    _positive(bytes_per_element=bytes_per_element, squares_per_layer=squares_per_layer)
    return bytes_per_element * peak_flops / (2 * squares_per_layer * hidden * bandwidth)


def _ranks(world_size):
    if not world_size >= 1:
        raise ValueError(f"world_size is {world_size}; give at least 1 rank")
    return world_size


def _positive(**values):
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} is {value}; give a number above 0")
