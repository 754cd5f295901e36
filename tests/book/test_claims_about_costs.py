"""What chapters 3 and 4 say about hops and bytes."""

from functools import partial

import pytest

from ringzero.collectives import ALGORITHMS
from ringzero.costs import nccl_tuner
from ringzero.costs.page import alpha_beta
from tests.book.test_claims_of_pages import run

CHAPTER_3 = "03_what_a_collective_costs.md"


def test_a_ring_over_eight_nodes_pays_the_network_for_14_hops():
    """Of 126 hops: the rest stay inside nodes. A bucket of 25 MB then pays more for its bytes than for its messages."""
    given = {"nccl_tuner": nccl_tuner, "alpha_beta": alpha_beta, "GB": 1e9}
    made = run(CHAPTER_3, "messages = nccl_tuner.latency(", **given)
    assert made["messages"] == pytest.approx(8.4e-6 + 14 * 14e-6 + 112 * 3.4e-6)
    assert 1 / 3 < made["messages"] / made["ring_of_64"](made["piece"]) < 0.4
    assert made["messages"] / made["ring_of_64"](made["gradients"]) < 0.002


def test_inside_a_node_a_tree_is_no_faster_than_a_ring_and_over_nodes_it_is():
    for protocol in ("LL", "Simple"):
        ring, tree = (partial(nccl_tuner.latency, "all_reduce", name, protocol) for name in ("ring", "tree"))
        assert all(tree(n) >= ring(n) for n in (2, 4, 8))
        assert all(ring(8 * nodes, nodes) / tree(8 * nodes, nodes) > max(1, nodes / 8) for nodes in (2, 4, 64, 2048))


def test_a_mesh_algorithm_sends_twice_what_a_torus_sends():
    """With long sides; and halving-doubling sends what the ring sends, in as few rounds as a tree."""
    sent = {name: ALGORITHMS["all_reduce"][name](1024).bytes_sent(1024, 1).max() / 1024
            for name in ("mesh_2d", "torus_2d", "rabenseifner", "ring")}  # fmt: skip
    assert sent["mesh_2d"] == pytest.approx(4, rel=0.05)
    assert sent["torus_2d"] == sent["rabenseifner"] == sent["ring"] == 2 * 1023 / 1024
    assert len(ALGORITHMS["all_reduce"]["rabenseifner"](1024).rounds) == 20
