"""Adding a stage of ZeRO takes what "For contributors" says and nothing else: its two blocks are read from the page."""

import re
import textwrap
from pathlib import Path

import pytest
import torch

from ringzero import launch
from ringzero.zero import plain
from tests.zero import test_zero

PAGE = Path(__file__).parents[2] / "book" / "for_contributors.md"
SECTION = re.search(r"(?s)## To add a stage of ZeRO\n(.*?)\n## ", PAGE.read_text()).group(1)
BLOCKS = [textwrap.dedent(block) for block in re.findall(r"(?s)```python\n(.*?) *```", SECTION)]
NEW = "3, gathered once"


def follow(blocks):
    """Do what the page says, in this process."""
    stage, row = blocks
    exec(stage, vars(plain))
    plain.PLAIN |= eval("{" + row + "}", vars(plain))


def trained(blocks):
    follow(blocks)
    return test_zero.every_plain_model()  # of each stage in the table


@pytest.mark.parametrize("world_size", [1, 3])
def test_it_trains_as_one_process_and_has_the_bits_of_the_others(world_size):
    ranks = launch(trained, BLOCKS, world_size=world_size).returns
    for name in {name for _, name in ranks[0]}:
        expected, _ = test_zero.alone(name, max_norm=float("inf"))
        test_zero.close(ranks[0][NEW, name], dict(expected), msg=name)
        for rank in ranks:
            assert all(torch.equal(rank[NEW, name][key], whole) for key, whole in ranks[0][3, name].items()), name


def one_backward_pass(blocks, stage):
    """Bytes that each layer's whole vector holds after it."""
    follow(blocks)
    module = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(3)))
    zero = plain.PLAIN[stage](module, lr=0.1)
    module(torch.ones(2, 8)).sum().backward()
    return [layer.whole.untyped_storage().size() for layer in zero.layers]


def test_a_layer_is_gathered_once_a_step():
    gathers = {}
    for stage in (3, NEW):
        done = launch(one_backward_pass, BLOCKS, stage, world_size=2, trace=True)
        gathers[stage] = [op.kind for op in done.trace if op.rank == 0].count("all_gather")
        assert done.returns == [[0, 0, 0]] * 2  # free again
    assert gathers == {3: 6, NEW: 3}
