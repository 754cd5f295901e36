"""NCCL's tuner: its latencies, step by step from its tables, and what it does not run."""

import pytest

from ringzero.costs import nccl_tuner as tuner

US = pytest.approx


def us(*arguments, **options):
    return tuner.latency(*arguments, **options) * 1e6


@pytest.mark.parametrize("protocol", ["LL", "LL128", "Simple"])
@pytest.mark.parametrize("link", ["nvlink", "pci"])
@pytest.mark.parametrize("n", [1, 2, 8])
def test_on_one_node_a_ring_has_n_minus_one_steps_a_pass(n, link, protocol):
    base, hop = tuner.base_latency("ring", protocol), tuner.hop_latency("ring", protocol, link)
    for collective, passes in [("all_reduce", 2), ("all_gather", 1), ("reduce_scatter", 1)]:
        steps = sum(1 for _ in range(passes) for _ in range(n - 1))
        assert tuner.latency(collective, "ring", protocol, n, link=link) == pytest.approx(base + steps * hop)
    base, hop = tuner.base_latency("tree", protocol), tuner.hop_latency("tree", protocol, link)
    up_and_down = tuner.latency("all_reduce", "tree", protocol, n, link=link)
    assert up_and_down == pytest.approx(base + (n - 1) * hop + (n - 1) * hop)


def test_a_ring_across_nodes_crosses_once_a_node():
    """3 nodes of 4: of 11 steps 2 are across nodes, and twice that for an all-reduce; posting sets the pace inside."""
    assert us("all_gather", "ring", "LL", 12, nodes=3) == US(6.6 + 9 * 1.0 + 2 * 2.7)
    assert us("all_reduce", "ring", "LL", 12, nodes=3) == US(6.6 + 18 * 1.0 + 4 * 2.7)
    assert us("all_reduce", "ring", "LL128", 12, nodes=3) == US(14 + 18 * 1.9 + 4 * 4.0)
    assert us("all_reduce", "ring", "Simple", 12, nodes=3) == US(8.4 + 18 * 3.4 + 4 * 14)
    assert us("all_reduce", "ring", "LL", 16, nodes=2) == US(6.6 + 28 * 1.0 + 2 * 2.7)


def test_one_rank_a_node_shows_the_network():
    """The ring's 2.7 becomes the tree's 5."""
    assert us("all_reduce", "ring", "LL", 4, nodes=4) == US(6.6 + 6 * 5.0)
    assert us("all_reduce", "tree", "LL", 4, nodes=4) == US(6.8 + 2 * 2 * 5.0)


def test_trees_double_across_nodes():
    assert us("all_reduce", "tree", "Simple", 64, nodes=8) == US(8.4 + 2 * (7 * 4 + 3 * 14))
    assert us("all_reduce", "tree", "LL", 24, nodes=3) == US(6.8 + 2 * (7 * 0.6 + 1 * 5))  # log2 of 3, rounded down


def test_in_the_switches():
    assert us("all_reduce", "nvls", "Simple", 8) == US(25)
    assert (
        us("all_reduce", "nvls", "Simple", 64, nodes=8)
        == us("all_reduce", "nvls", "Simple", 16, nodes=2)
        == US(25 + 18)
    )
    assert us("all_reduce", "nvls_tree", "Simple", 64, nodes=8) == US(25 + 2 * 3 * 20.9)
    assert us("all_gather", "collnet_direct", "Simple", 64, nodes=8) == US(2 * (3.7 + 7 * 0.4) + 31)
    assert us("all_reduce", "collnet_direct", "Simple", 8, nodes=8) == US(14)  # one rank a node: the tree's
    assert us("all_reduce", "collnet_chain", "Simple", 64, nodes=8) == US(2 * 7 * 2.8 + 30)
    assert us("all_gather", "pat", "Simple", 8, nodes=8) == US(8 + 3 * 14 / 3.5 + 8 * 2.8)


def test_a_ring_that_broadcasts():
    assert us("broadcast", "ring", "LL", 8) == US(6.6 + 0.6)
    assert us("reduce", "ring", "LL", 16, nodes=2) == US(6.6 + 2.7)
    assert us("broadcast", "ring", "Simple", 8, link="pci") == US(8.4 + 5.7)


def test_bandwidths_by_generation_and_nodes():
    assert [tuner.bandwidth_limit("ll_max_bandwidth", "Ampere", nodes) for nodes in (1, 2, 3, 64)] == [
        87.7e9,
        22.5e9,
        19e9,
        19e9,
    ]
    assert tuner.bandwidth_limit("per_channel_tree", "Hopper", 2) == 41.4e9
    assert tuner.bandwidth_limit("per_channel_tree", "Hopper") == 38.7e9
    assert tuner.bandwidth_limit("per_channel_nvls_tree", "Blackwell", 4) == 80e9


def test_ll_across_nodes_goes_by_the_cpu():
    """On several nodes the rows of Hopper and Blackwell are not read: NCCL asks who made the CPUs."""
    assert [tuner.ll_bandwidth_limit("Hopper", nodes) for nodes in (1, 2, 3, 4)] == [141e9, 39e9, 20.4e9, 20.4e9]
    assert [tuner.ll_bandwidth_limit("Hopper", nodes, cpu="AMD") for nodes in (1, 2, 4)] == [141e9, 22.5e9, 19e9]
    assert tuner.ll_bandwidth_limit("Blackwell") == 282e9
    assert tuner.ll_bandwidth_limit("Blackwell", 4) == tuner.ll_bandwidth_limit("Volta", 4) == 20.4e9


def test_tables_have_the_same_algorithms():
    for rows in tuner.HOP_LATENCY.values():
        assert list(rows) == list(tuner.BASE_LATENCY)
    assert {name for names in tuner.ALGORITHMS.values() for name in names} == set(tuner.BASE_LATENCY)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: us("all_to_all", "ring", "LL", 8), "collective is 'all_to_all'; it is one of all_reduce"),
        (
            lambda: us("all_gather", "tree", "LL", 8),
            "algorithm is 'tree'; NCCL runs all_gather as one of ring, collnet",
        ),
        (lambda: us("all_reduce", "pat", "Simple", 8), "algorithm is 'pat'; NCCL runs all_reduce as one of ring, tree"),
        (lambda: us("all_reduce", "nvls", "LL", 8), "protocol is 'LL'; NCCL runs nvls with 'Simple' alone"),
        (lambda: us("all_reduce", "ring", "LL256", 8), "protocol is 'LL256'; it is one of LL, LL128, Simple"),
        (lambda: us("all_reduce", "ring", "LL", 8, link="net"), "link is 'net'; it is one of nvlink, pci"),
        (lambda: us("all_reduce", "ring", "LL", 0), "world_size is 0; give at least 1 rank"),
        (lambda: us("all_reduce", "ring", "LL", 8, nodes=3), "nodes is 3; give a number that divides world_size, 8"),
        (lambda: us("all_reduce", "ring", "LL", 8, nodes=0), "nodes is 0; give"),
        (lambda: tuner.base_latency("star", "LL"), "algorithm is 'star'; it is one of tree, ring"),
        (lambda: tuner.base_latency("ring", "ll"), "protocol is 'll'; it is one of LL"),
        (lambda: tuner.hop_latency("ring", "LL", "usb"), "link is 'usb'; it is one of nvlink, pci, net"),
        (lambda: tuner.hop_latency("star", "LL", "net"), "algorithm is 'star'"),
        (lambda: tuner.hop_latency("ring", "ll", "net"), "protocol is 'll'"),
        (lambda: tuner.bandwidth_limit("max", "Hopper"), "table is 'max'; it is one of ll_max_bandwidth"),
        (lambda: tuner.bandwidth_limit("per_channel_tree", "Turing"), "generation is 'Turing'; it is one of Volta"),
        (lambda: tuner.bandwidth_limit("per_channel_tree", "Hopper", 0), "nodes is 0; give"),
        (lambda: tuner.ll_bandwidth_limit("Turing", 4), "generation is 'Turing'; it is one of Volta"),
        (lambda: tuner.ll_bandwidth_limit("Hopper", 4, cpu="Arm"), "cpu is 'Arm'; it is one of Intel, AMD"),
        (lambda: tuner.ll_bandwidth_limit("Hopper", 0), "nodes is 0; give"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
