"""A collective on nodes of GPUs: the closed form against the priced schedules of ``steps.machine``."""

import math

import pytest

from ringzero.costs.page import hardware, nodes, overlap
from ringzero.steps.machine import of_gpus

MACHINES = [("H100", "NDR", 8), ("A100", "HDR", 8), ("B200", "NDR", 4), ("H100", "NDR", 1), ("L40S", "NDR", 1)]


@pytest.mark.parametrize(("gpu", "port", "gpus"), MACHINES)
@pytest.mark.parametrize("count", [1, 2, 3, 8, 60])
@pytest.mark.parametrize("collective", ["all_reduce", "all_gather", "reduce_scatter"])
def test_the_closed_form_is_the_price_of_the_schedules(gpu, port, gpus, count, collective):
    machine = of_gpus(gpu, count, gpus, port)
    inside = hardware.nvlink(gpu) or hardware.pcie(hardware.gpu(gpu)["pcie_generation"])
    links = {"gpus_per_node": gpus, "inside": inside * 1e9, "port": hardware.infiniband(port) * 1e9}
    if machine.ranks == 1:
        assert nodes.seconds(collective, 1e6, 1, **links) == 0
        with pytest.raises(ValueError, match="nodes is 1, of 1 GPU each"):
            nodes.bandwidth(collective, 1e6, 1, **links)
        return
    for size in (1.0, 1e5, 25e6, 4e8, 1e11):
        assert nodes.seconds(collective, size, count, **links) == pytest.approx(machine.seconds(collective, size))
        reached = machine.effective_bandwidth(collective, size=size)
        assert nodes.bandwidth(collective, size, count, **links) == pytest.approx(reached)
    whole = machine.effective_bandwidth(collective, size=math.inf)
    assert nodes.bandwidth(collective, None, count, **links) == pytest.approx(whole)


def test_tokens_that_hide_a_bucket_of_25_mb_grow_with_the_nodes():
    """At the H100's peak; a buffer of any size would need about 2,400 on any number of nodes."""
    needed = {
        ranks: round(
            overlap.min_tokens_for_data_parallel(989e12, nodes.bandwidth("all_reduce", 25e6, ranks // 8), ranks)
        )
        for ranks in (16, 128, 1024)
    }
    assert needed == {16: 4655, 128: 13490, 1024: 27926}
    large = [
        round(overlap.min_tokens_for_data_parallel(989e12, nodes.bandwidth("all_reduce", None, ranks // 8), ranks))
        for ranks in needed
    ]
    assert large == [2318, 2453, 2470]


def test_what_is_not_a_cluster_is_refused():
    with pytest.raises(ValueError, match="collective is 'gossip'; it is one of all_reduce"):
        nodes.seconds("gossip", 1e6, 2)
    with pytest.raises(ValueError, match="nodes is 0; give a number above 0"):
        nodes.seconds("all_reduce", 1e6, 0)
