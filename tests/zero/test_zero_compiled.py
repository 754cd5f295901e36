"""Units that are compiled in place, or whose weights hooks compute, in stage 3; and what a model says that it holds."""

import copy

import pytest
import torch
import torch.distributed as dist
from torch.nn import LayerNorm, Linear, Sequential

from ringzero import launch
from ringzero.zero import STAGES


def blocks():
    torch.manual_seed(0)
    return Sequential(*(Sequential(LayerNorm(8), Linear(8, 8)) for _ in range(3))).double()


def compiled_units(module):
    for block in module:
        block.compile(backend="aot_eager")


def compiled_later(_module):
    """Nothing; the units are compiled after the model was sharded."""


def compiled_whole(module):
    module.compile(backend="aot_eager")


def normed(module):
    for block in module:
        torch.nn.utils.weight_norm(block[1])


def norm_of_a_unit(module):
    module[1] = torch.nn.utils.weight_norm(Linear(8, 8).double())


def trained(stage, change):
    module = blocks()
    change(module)
    plain = blocks()
    change(plain) if "norm" in change.__name__ else None
    plain.load_state_dict(copy.deepcopy(module.state_dict()))
    dist.barrier()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.1)
    units = list(module) if change is compiled_units else None
    model = STAGES[stage](module, torch.optim.SGD, lr=0.1, units=units)
    if change is compiled_later:
        compiled_units(module)
    for step in range(3):
        x = torch.randn(6, 8, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
        plain(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        model(x.chunk(2)[dist.get_rank()]).square().mean().backward()
        model.step()
        model.zero_grad()
    state = model.state_dict()
    return max((state[name] - value).abs().max().item() for name, value in plain.named_parameters())


@pytest.mark.parametrize("change", [compiled_units, compiled_later, compiled_whole, normed, norm_of_a_unit])
@pytest.mark.parametrize("stage", [1, 3])
def test_what_is_compiled_in_place_or_computed_by_hooks_trains_as_one_process(stage, change):
    assert max(launch(trained, stage, change, world_size=2).returns) < 1e-12


def summaries():
    return {
        stage: STAGES[stage](blocks().float(), torch.optim.AdamW, mixed_precision=torch.bfloat16).summary()
        for stage in STAGES
    }


def test_a_model_says_what_it_holds():
    for said in launch(summaries, world_size=2).returns:
        assert "parameters, what is not trained; computed with in bfloat16" in said[2]
        assert "parameters, gradients, optimizer states; stepped in float32, by AdamW on Device; 2 shards" in said[3]
        assert "gradients, parameters, what is not trained" in said[1]
