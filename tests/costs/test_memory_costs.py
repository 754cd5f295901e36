"""Bytes of training, against what torch really holds, and against the papers' closed forms."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.checkpoint import checkpoint

from ringzero.costs import deepspeed
from ringzero.costs.page import memory as mem
from ringzero.costs.page.coefficients import COEFFICIENTS
from tests.small_transformers import Block, Gpt, kept_for_backward, params


def held(tensors):
    return sum(t.untyped_storage().nbytes() for t in tensors)


def optimizer_states(optimizer):
    return [value for state in optimizer.state.values() for value in state.values() if isinstance(value, torch.Tensor)]


def gpt_with_gradients(dtype=torch.float32):
    model = Gpt(2, 16, 29, 24, 4).to(dtype)
    model(torch.randint(29, (2, 24))).float().sum().backward()
    return model, list(model.parameters())


OPTIMIZERS = {
    "sgd": torch.optim.SGD,
    "momentum": lambda p: torch.optim.SGD(p, momentum=0.9),
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_model_states_in_fp32_to_the_byte(name):
    model, weights = gpt_with_gradients()
    optimizer = OPTIMIZERS[name](weights)
    optimizer.step()
    states = optimizer_states(optimizer)
    assert held(states) == mem.torch_optimizer_bytes(params(model), len(weights), name)
    steps = 4 * len(weights) if "adam" in name else 0
    together = held(weights) + held(p.grad for p in weights) + held(states)
    each = mem.bytes_per_param(name, mixed_precision=False)
    assert together == mem.model_state_bytes(params(model), each=each) + steps


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_model_states_in_mixed_precision_to_the_byte(name):
    """16-bit weights and gradients; the optimizer steps fp32 weights with gradients that live for the step alone."""
    model, weights = gpt_with_gradients(torch.bfloat16)
    masters = [p.detach().float() for p in weights]
    optimizer = OPTIMIZERS[name](masters)
    for master, p in zip(masters, weights, strict=True):
        master.grad = p.grad.float()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    moments = [state for state in optimizer_states(optimizer) if state.dim()]  # the step counts aside
    parts = held(weights), held(p.grad for p in weights), held(masters) + held(moments)
    assert parts == mem.model_state_parts(params(model), each=mem.bytes_per_param(name))


def test_bytes_of_a_parameter():
    """Errata: in mixed precision Adam keeps three fp32 numbers a weight, 12 bytes, and not six."""
    assert mem.bytes_per_param() == mem.bytes_per_param("adamw") == (2, 2, 12)
    assert mem.bytes_per_param(fp32_gradient_accumulation=True) == (2, 6, 12)
    assert mem.bytes_per_param("momentum") == (2, 2, 8)
    assert mem.bytes_per_param("sgd", mixed_precision=False) == (4, 4, 0)


def test_one_gpu_and_adam_in_mixed_precision_unless_told():
    assert mem.model_state_parts(10) == (20, 20, 120)
    assert mem.max_params(16e9, stage=3) == 1e9
    assert deepspeed.zero2_bytes(100) == (600, 2000)
    assert deepspeed.zero3_bytes(100, 10) == (60, 1840)


def test_the_largest_model_fits_exactly():
    for stage in range(4):
        most = mem.max_params(32e9, stage, 64, tensor_parallel=2)
        assert mem.model_state_bytes(most / 2, stage, 64) == pytest.approx(32e9)


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 100])
def test_communication_is_that_of_the_collectives(world_size):
    """Errata: ZeRO-3 moves 3 (N-1)/N of the parameters, not 3/N."""
    names = ("all_gather", "reduce_scatter", "all_reduce")
    gather, scatter, both = (COEFFICIENTS[name]["ring"](world_size)[1] for name in names)
    size, exact = 1000, mem.communication_elements
    assert exact(size, 0, world_size) == pytest.approx(size * both)
    assert exact(size, 1, world_size) == exact(size, 2, world_size) == pytest.approx(size * (scatter + gather))
    assert exact(size, 3, world_size) == pytest.approx(size * (scatter + 2 * gather))
    assert [exact(size, stage, world_size, 4) for stage in range(4)] == pytest.approx(
        [size * part for part in (2 * gather, 2 * gather, 4 * scatter + gather, 4 * (scatter + 2 * gather))]
    )


def test_communication_as_the_paper_counts_it():
    assert [mem.communication_elements(7, stage) for stage in range(4)] == [14, 14, 14, 21]


def test_errata_350_gb_is_gpt_3_s_gradient_and_twice_that_is_sent():
    assert mem.model_state_parts(175e9)[1] == 350e9
    assert 2 * mem.communication_elements(175e9, 0, 1024) == pytest.approx(700e9, rel=0.001)


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_deepspeed_beside_the_paper(nodes):
    """Both named, both right by their own convention. A node has 8 GPUs."""
    size, layer, gpus = 2851e6, 32e6, 8 * nodes
    paper = mem.model_state_bytes(size, 2, gpus), mem.model_state_bytes(size, 3, gpus)
    ours = deepspeed.zero2_bytes(size, 8, nodes)[1], deepspeed.zero3_bytes(size, layer, 8, nodes)[1]
    assert ours[0] - paper[0] == pytest.approx(size * (2 + 2 / gpus))
    assert ours[1] - paper[1] == pytest.approx(size * 2 / gpus + 4 * layer)


def test_deepspeed_s_estimates_case_by_case():
    """The table of DeepSpeed's memory.rst: 2,851M parameters, a layer of 32M, one node of 8 GPUs; GiB."""
    size, layer = 2851e6, 32e6
    rows = {
        ("all", True): (71.69, 0.12),
        ("all", False): (127.45, 0.12),
        ("optimizer", True): (63.72, 0.78),
        ("optimizer", False): (127.45, 0.78),
        ("none", True): (1.43, 6.09),
        ("none", False): (127.45, 6.09),
    }
    for (offload, zero_init), printed in rows.items():
        both = deepspeed.zero3_bytes(size, layer, 8, 1, offload, zero_init)
        assert [part / 2**30 for part in both] == pytest.approx(printed, abs=0.0051)
    for offload, printed in {"optimizer": (127.45, 5.31), "none": (127.45, 15.93)}.items():
        both = deepspeed.zero2_bytes(size, 8, 1, offload)
        assert [part / 2**30 for part in both] == pytest.approx(printed, abs=0.0051)


def test_deepspeed_on_several_nodes():
    """What is offloaded is shared by the nodes; what a process builds first is not. ZeRO-2's counts all GPUs."""
    size, layer = 1e9, 1e7
    assert deepspeed.zero3_bytes(size, layer, 8, 4, "all")[0] == 18e9 / 4 * 1.5
    assert deepspeed.zero3_bytes(size, layer, 8, 4, "all", zero_init=False)[0] == 32e9 * 1.5
    assert deepspeed.zero3_bytes(size, layer, 8, 4)[0] == 32e7 * 1.5
    assert deepspeed.zero2_bytes(size, 8, 4, "optimizer")[0] == 128e9 * 1.5


BATCH, SEQUENCE, HIDDEN, HEADS = 2, 48, 64, 4
TOKENS = BATCH * SEQUENCE
VARIANTS = {  # what the block does, and how the formula is told
    "dropout": ({"dropout": 0.1}, {}),
    "no dropout": ({}, {"dropout": False}),
    "attention recomputed": ({"dropout": 0.1, "attention": "recomputed"}, {"recomputation": "selective"}),
    "flash": ({"dropout": 0.1, "attention": "flash"}, {"flash_attention": True}),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("variant", VARIANTS)
def test_activations_of_a_layer_are_what_autograd_keeps(variant, dtype):
    """To the byte, but for what the formula says it leaves out: a mean and a deviation a token of two LayerNorms."""
    block, formula = VARIANTS[variant]
    size = dtype.itemsize  # of a mask, too: dropout on a CPU keeps it in its input's dtype
    x = torch.randn(BATCH, SEQUENCE, HIDDEN, dtype=dtype, requires_grad=True)
    measured = kept_for_backward(Block(HIDDEN, HEADS, **block).to(dtype), x)
    predicted = mem.activation_bytes(
        TOKENS, SEQUENCE, HIDDEN, HEADS, bytes_per_element=size, mask_bytes=size, **formula
    )
    assert measured == pytest.approx(predicted, rel=0.02)
    assert measured - predicted == 2 * 2 * TOKENS * size


def test_a_gpu_s_masks_would_predict_a_cpu_s_layer_wrongly():
    cpu, gpu = (mem.activation_bytes(TOKENS, SEQUENCE, HIDDEN, HEADS, mask_bytes=size) for size in (2, 1))
    assert cpu / gpu > 1.05


def test_full_recomputation_keeps_the_layer_s_input():
    block = Block(HIDDEN, HEADS, dropout=0.1)

    def recomputed(x):
        return checkpoint(block, x, use_reentrant=False)

    recomputed.parameters = block.parameters
    x = torch.randn(BATCH, SEQUENCE, HIDDEN, requires_grad=True)
    predicted = mem.activation_bytes(TOKENS, SEQUENCE, HIDDEN, HEADS, bytes_per_element=4, recomputation="full")
    assert kept_for_backward(recomputed, x) == predicted == 4 * TOKENS * HIDDEN


def test_activations_after_the_last_layer():
    class End(nn.Module):
        def __init__(self, vocab):
            super().__init__()
            self.norm, self.head = nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, vocab, bias=False)

        def forward(self, x, target):
            return F.cross_entropy(self.head(self.norm(x)), target)

    vocab = 1000
    x, target = torch.randn(TOKENS, HIDDEN, requires_grad=True), torch.randint(vocab, (TOKENS,))
    predicted = mem.output_activation_bytes(TOKENS, HIDDEN, vocab, bytes_per_element=4)
    left_out = 2 * 4 * TOKENS + target.nbytes + 4  # the LayerNorm's numbers, the targets, and how many count
    assert kept_for_backward(End(vocab), x, target) == predicted + left_out


@pytest.mark.parametrize("ways", [1, 2, 8])
def test_activations_are_the_paper_s_table(ways):
    """Korthikanti et al. 2022, table 2. It is bytes a layer, with 1-byte masks and no FlashAttention."""
    b, s, h, a, layers = 4, 2048, 6144, 64, 48
    sbh, attention = s * b * h, 5 * a * s / h

    def bytes_of(sequence_parallel, recomputation="none"):
        return mem.activation_bytes(s * b, s, h, a, layers, ways, sequence_parallel, recomputation=recomputation) / (
            layers * sbh
        )

    assert attention == mem.attention_activation_coefficient(a, s, h)
    assert bytes_of(False) == pytest.approx(10 + 24 / ways + attention / ways)
    assert bytes_of(True) == pytest.approx((34 + attention) / ways)
    assert bytes_of(False, "selective") == pytest.approx(10 + 24 / ways)
    assert bytes_of(True, "selective") == pytest.approx(34 / ways)
    assert bytes_of(False, "full") == pytest.approx(2)
    saved = 1 - bytes_of(True, "selective") / bytes_of(True)
    assert mem.selective_recomputation_saving(a, s, h) == pytest.approx(saved)
    end = mem.output_activation_bytes(s * b, h, 51200, ways, sequence_parallel=True)
    assert end == pytest.approx(4 * sbh / ways * (1 + 51200 / h))


def test_flash_attention_keeps_one_number_a_head_and_token():
    shape = {"tokens": 4096, "sequence": 2048, "hidden": 512, "heads": 8}
    flash, selective = (
        mem.activation_bytes(**shape, flash_attention=True),
        mem.activation_bytes(**shape, recomputation="selective"),
    )
    assert selective == 34 * 4096 * 512
    assert flash - selective == 4 * 8 * 4096


def test_layers_that_zero_3_has_gathered():
    assert mem.gathered_layer_bytes(100) == 600  # its parameters and its gradient, and the next one's parameters


def layer(**changed):
    return {"tokens": 8, "sequence": 4, "hidden": 8, "heads": 2} | changed


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mem.bytes_per_param("lion"), "optimizer is 'lion'; it is one of sgd, momentum, adam, adamw"),
        (lambda: mem.torch_optimizer_bytes(10, 0), "tensors is 0; give"),
        (lambda: mem.model_state_bytes(0), "params is 0; give"),
        (lambda: mem.model_state_bytes(10, 4), "stage is 4; ZeRO has the stages 0"),
        (lambda: mem.model_state_bytes(10, 1, 0), "world_size is 0; give at least 1 rank"),
        (lambda: mem.model_state_bytes(10, 1, 11), "world_size is 11; with 10 parameters some ranks would hold no"),
        (lambda: mem.communication_elements(10, 3, 11), "world_size is 11; with 10 parameters some ranks"),
        (lambda: mem.communication_elements(10, 3, 0), "world_size is 0; give"),
        (lambda: mem.communication_elements(10, -1), "stage is -1; ZeRO"),
        (lambda: mem.communication_elements(10, 2, 2, 0), "micro_batches is 0; give"),
        (lambda: mem.max_params(0), "memory_bytes is 0; give"),
        (lambda: mem.max_params(1e9, 1, -2), "world_size is -2; give"),
        (lambda: deepspeed.zero2_bytes(10, 0), "gpus_per_node is 0; give"),
        (lambda: deepspeed.zero2_bytes(10, 1, 1, "all"), "offload is 'all'; it is one of none, optimizer"),
        (lambda: deepspeed.zero3_bytes(10, 5, 1, 1, "cpu"), "offload is 'cpu'; it is one of none, optimizer"),
        (lambda: mem.attention_activation_coefficient(0, 1, 1), "heads is 0; give"),
        (lambda: mem.activation_bytes(**layer(hidden=0)), "hidden is 0; give"),
        (lambda: mem.activation_bytes(**layer(layers=0)), "layers is 0; give"),
        (lambda: mem.activation_bytes(**layer(mask_bytes=0)), "mask_bytes is 0; give"),
        (lambda: mem.activation_bytes(**layer(tensor_parallel=0)), "tensor_parallel is 0; give"),
        (
            lambda: mem.activation_bytes(**layer(recomputation="some")),
            "recomputation is 'some'; it is one of none, sel",
        ),
        (lambda: mem.output_activation_bytes(8, 8, 0), "vocab is 0; give"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_more_ranks_than_parameters_are_fine_where_nothing_is_sharded():
    assert mem.model_state_bytes(10, 0, 11) == 160
