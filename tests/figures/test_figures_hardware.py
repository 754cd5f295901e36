"""The figures of chapters 0, 3, 4 and 5: nodes, networks and trees over ranks, a ring that moves, a buffer in slots."""

import re
import xml.etree.ElementTree as ET
from itertools import combinations, permutations

import pytest

from ringzero.collectives.ring import ring_all_gather, ring_all_reduce
from ringzero.costs.page import hardware
from ringzero.network import mesh, torus
from ringzero_course.figures.circling import TALL, circle
from ringzero_course.figures.networks import board_and_cube, spine_leaf, torus_and_mesh
from ringzero_course.figures.tree_pairs import two_trees
from ringzero_course.figures.wiring import node_and_cluster
from ringzero_course.figures.zooming import BAR, zoom

SVG = "{http://www.w3.org/2000/svg}"


def parts(figure, tag, name=None):
    svg = ET.fromstring(re.search(r"<svg.*?</svg>", figure.html, re.DOTALL).group())
    return [element for element in svg.iter(SVG + tag) if name is None or element.get("class") == name]


def words(figure):
    return [text.text for text in parts(figure, "text")]


@pytest.mark.parametrize("node", [name for name, _ in hardware.NODES])
@pytest.mark.parametrize("nodes", [2, 8])
def test_a_cluster_has_all_gpus_and_cards_and_the_bandwidths_of_the_table(node, nodes):
    figure, row = node_and_cluster(node, nodes), hardware.node(node)
    assert len(parts(figure, "rect", "gpu")) == nodes * row["gpus"]
    assert len(parts(figure, "rect", "nic")) == row["gpus"]
    assert len(parts(figure, "rect", "node")) == nodes
    said = words(figure)
    assert f"{hardware.nvlink(row['gpu']):.0f} GB/s a GPU" in said
    assert f"{hardware.infiniband(row['infiniband']):.0f} GB/s a card" in said
    assert f"{hardware.pcie(hardware.gpu(row['gpu'])['pcie_generation']):.0f} GB/s a GPU" in said


def test_a_thicker_line_carries_more():
    lines = [float(line.get("stroke-width")) for line in parts(node_and_cluster("DGX H100", 2), "line")]
    assert sorted(set(lines)) == sorted({7.0, 2.6, 2.3})  # NVLink 450, PCIe 63, NDR 50: as their roots
    assert lines.count(7.0) == 8
    assert lines.count(2.3) == 16  # a cable for each card of both nodes


@pytest.mark.parametrize("nodes", [1, 9])
def test_a_cluster_that_does_not_fit_is_refused(nodes):
    with pytest.raises(ValueError, match="2 to 8"):
        node_and_cluster(nodes=nodes)


def levels(figure):
    return [round(float(rect.get("height")) / TALL, 3) for rect in parts(figure, "rect", "held")]


def test_glasses_fill_as_ranks_add_to_them():
    assert levels(circle(ring_all_reduce(4), 0)) == [0.25] * 16
    # After three rounds each chunk has been filled on one rank, by 1, 2 and 3 others on the way there.
    assert sorted(levels(circle(ring_all_reduce(4), 3))) == [0.25] * 4 + [0.5] * 4 + [0.75] * 4 + [1.0] * 4
    assert levels(circle(ring_all_reduce(4), 6)) == [1.0] * 16
    assert "full glasses: 8 of 16" in words(circle(ring_all_reduce(4), 4))


@pytest.mark.parametrize(("rounds_done", "mark"), [(1, "+"), (3, "+"), (4, ""), (6, "")])
def test_each_message_of_the_round_is_drawn_with_its_chunk(rounds_done, mark):
    schedule = ring_all_reduce(4)
    figure = circle(schedule, rounds_done)
    drawn = [text.text for text in parts(figure, "text", "chunk")]
    assert drawn == [f"{mark}{t.chunk}" for t in schedule.rounds[rounds_done - 1]]
    assert len(parts(figure, "g", "message")) == 4
    bold = [rect for rect in parts(figure, "rect", "glass") if rect.get("stroke-width") == "2.5"]
    assert len(bold) == 4


@pytest.mark.parametrize("ranks", range(2, 9))
def test_ranks_do_not_lie_on_each_other(ranks):
    boxes = [tuple(float(box.get(key)) for key in ("x", "y", "width", "height"))
             for box in parts(circle(ring_all_reduce(ranks), 1), "rect", "rank")]  # fmt: skip
    for one, other in combinations(boxes, 2):
        beside = any(abs(one[axis] - other[axis]) > one[axis + 2] + 20 for axis in (0, 1))
        assert beside, (one, other)


@pytest.mark.parametrize(
    ("schedule", "rounds_done", "said"),
    [(ring_all_gather(4), 0, "sums nothing"), (ring_all_reduce(9), 0, "room"), (ring_all_reduce(4), 7, "6 rounds")],
)
def test_what_the_circle_cannot_draw_is_refused(schedule, rounds_done, said):
    with pytest.raises(ValueError, match=said):
        circle(schedule, rounds_done)


ROWS = [("whole", ["a 0", "a 1"], 1), ("a part", ["b 0", "b 1", "b 2", "b 3"], 3)]


def test_the_coloured_part_opens_to_the_next_row():
    figure = zoom(ROWS, title="Cut twice")
    chosen = parts(figure, "rect", "chosen")
    assert [float(rect.get("width")) for rect in chosen] == [BAR / 2] + [BAR / 4] * 3
    left = float(chosen[0].get("x"))
    ends = [(float(line.get("x1")), float(line.get("x2"))) for line in parts(figure, "line")]
    assert ends == [(left, left), (left + BAR / 2, left + BAR * 3 / 4)]  # the last row's coloured parts, three of four
    longer = zoom([*ROWS, ("parts of b", ["c 0", "c 1"], 1)], title="Cut three times")
    first, wide = (float(line.get("x2")) for line in parts(longer, "line")[:2])
    assert wide - first == pytest.approx(BAR)
    assert {"a 0", "a 1", "b 0", "b 3"} <= set(words(figure))
    assert "a part: 4 parts, b 0 to b 3, the first 3 coloured" in figure.alt


@pytest.mark.parametrize("rows", [[], [("whole", ["a"], 2)], [("whole", [], 1)]])
def test_rows_without_their_parts_are_refused(rows):
    with pytest.raises(ValueError, match="at least one part"):
        zoom(rows, title="Nothing")


def test_text_has_the_colour_of_the_page_or_of_its_box():
    for figure in (node_and_cluster(), circle(ring_all_reduce(4), 2), zoom(ROWS, title="Cut twice")):
        for text in re.findall(r"<text[^>]*>", figure.html):
            assert ("fill=" in text) == ('class="chunk"' in text), text


@pytest.mark.parametrize("oversubscription", [1, 4])
def test_uplinks_carry_what_the_oversubscription_leaves(oversubscription):
    figure = spine_leaf(oversubscription, leaves=4, nodes_per_leaf=4, cards=8, spines=2)
    assert len(parts(figure, "rect", "switch")) == 6
    assert len(parts(figure, "rect", "node")) == 16
    up, down = (parts(figure, "line", kind) for kind in ("uplink", "downlink"))
    assert len(up) == 8
    assert len(down) == 16
    carried = 4 * 8 * hardware.infiniband("NDR")
    assert f"{carried:,.0f} GB/s" in words(figure)
    assert f"{carried / oversubscription:,.0f} GB/s" in words(figure)
    thick = [float(line.get("stroke-width")) for line in (up[0], down[0])]
    shares = carried / oversubscription / 2, carried / 4  # of an uplink, of a node's links
    assert (thick[0] / thick[1]) ** 2 == pytest.approx(shares[0] / shares[1], rel=0.02)


@pytest.mark.parametrize("given", [{"oversubscription": 0.5}, {"leaves": 5}, {"spines": 0}])
def test_a_fabric_that_does_not_fit_is_refused(given):
    with pytest.raises(ValueError, match="1 or more|room for 4"):
        spine_leaf(**given)


def test_a_torus_and_a_mesh_have_the_wires_of_their_topologies():
    figure, sides = torus_and_mesh(3, 4), (3, 4)
    wires, around = len(parts(figure, "line", "wire")), len(parts(figure, "path", "around"))
    directed = [len(topology(sides, 1, 1).alpha) for topology in (torus, mesh)]
    used = [len({link for pair in permutations(range(12), 2) for link in topology(sides, 1, 1).path(*pair)})
            for topology in (torus, mesh)]  # fmt: skip
    assert directed[0] == used[0] == 2 * (wires // 2 + around)
    assert used[1] == 2 * (wires // 2)
    assert len(parts(figure, "circle", "rank")) == 2 * 12
    with pytest.raises(ValueError, match="room"):
        torus_and_mesh(2, 4)


def test_a_board_s_chips_have_six_links_each():
    figure = board_and_cube()
    assert len(parts(figure, "rect", "chip")) == 4
    assert 2 * len(parts(figure, "line", "wire")) + len(parts(figure, "line", "out")) == 4 * 6
    assert len(parts(figure, "circle", "of-cube")) == 64


@pytest.mark.parametrize("ranks", [3, 7, 15])
def test_each_rank_but_the_root_is_a_leaf_of_one_tree_at_least(ranks):
    figure = two_trees(ranks)
    assert len(parts(figure, "g", "edge")) == 2 * (ranks - 1)
    assert [text.text for text in parts(figure, "text", "chunk")] == 2 * [f"{rank}" for rank in range(ranks)]
    (said,) = [element.text for element in parts(figure, "desc")]
    senders = [{int(one) for one in re.findall(r"(\d+) to", half)} for half in said.split(";")]
    assert senders[0] & senders[1] == {0}
    assert senders[0] | senders[1] == set(range(ranks))


@pytest.mark.parametrize("ranks", [1, 8, 17])
def test_trees_that_do_not_fit_are_refused(ranks):
    with pytest.raises(ValueError, match="odd number"):
        two_trees(ranks)
