"""Which links a message crosses, and what each link costs.

    torus((16, 16), alpha=1e-6, bandwidth=50e9)
    cluster(switch(8, alpha=3e-6, bandwidth=450e9), nodes=4, alpha=14e-6, bandwidth=50e9, nics=8)

A topology is ranks and directed links. A message crosses the links of its route; the messages of a round that cross
one link share its bandwidth. Routing is static: one route for each pair of ranks.

A message pays the alpha of every link it crosses. A message through a switch crosses two, a port out and a port in;
only the port out has an alpha, so it pays once.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from ringzero.collectives.schedule import check_world_size

NO_LINK = -1  # pads routes that are shorter than the longest


@dataclass(frozen=True, eq=False)
class Topology:
    """Ranks laid out as ``shape``, and the directed links between them.

    ``alpha[l]`` (seconds) and ``bandwidth[l]`` (bytes a second) belong to link l, which ``label(l)`` names; shapes
    ``(links,)``. ``route(src, dst)`` takes arrays of ranks, where ``src[i]`` and ``dst[i]`` differ. It gives the links
    that message i crosses, shape ``(hops, messages)``, padded with ``NO_LINK``. ``gamma``: seconds a rank takes to
    reduce a byte. Raises ValueError for a negative alpha or gamma and for a bandwidth that is not above 0.
    """

    name: str
    shape: tuple[int, ...]  # a torus's sides; (nodes, ranks a node) of a cluster
    alpha: np.ndarray
    bandwidth: np.ndarray
    route: Callable = field(repr=False)
    label: Callable[[int], str] = field(repr=False)
    gamma: float = 0.0
    inside: int | None = None  # links numbered from here on join nodes; None: there are no such links

    def __post_init__(self):
        if not (np.min(self.alpha) >= 0 and np.min(self.bandwidth) > 0 and self.gamma >= 0):
            raise ValueError(
                f"{self.name}: alpha is {np.min(self.alpha)}, bandwidth {np.min(self.bandwidth)}, gamma {self.gamma}; "
                "give alpha and gamma from 0 (seconds) and bandwidth above 0 (bytes a second)"
            )
        self.alpha.flags.writeable = self.bandwidth.flags.writeable = False

    def __repr__(self):
        return f"<{self.name}: {self.world_size} ranks, {len(self.alpha)} links>"

    @property
    def world_size(self) -> int:
        return prod(self.shape)

    def scaled(self, alpha: float = 1.0, bandwidth: float = 1.0, between: float | None = None) -> "Topology":
        """The same with every alpha and bandwidth multiplied, for instance by what a protocol makes of them.

        ``between`` multiplies the alphas of the links that join nodes; None: ``alpha`` does.
        """
        within = np.arange(len(self.alpha)) < (len(self.alpha) if self.inside is None else self.inside)
        by = np.where(within, alpha, alpha if between is None else between)
        return replace(self, alpha=self.alpha * by, bandwidth=self.bandwidth * bandwidth)

    def links_crossed(self, src: ArrayLike, dst: ArrayLike) -> np.ndarray:
        """The links from ranks ``src`` to ``dst``; none from a rank to itself. Shape ``(hops, messages)``."""
        src, dst = (np.atleast_1d(np.asarray(ranks, dtype=np.int64)) for ranks in (src, dst))
        return np.where(src == dst, NO_LINK, self.route(src, dst))

    def path(self, src: int, dst: int) -> list[str]:
        """The names of the links that a message from rank ``src`` to rank ``dst`` crosses."""
        return [self.label(int(link)) for link in self.links_crossed(src, dst)[:, 0] if link != NO_LINK]


def switch(world_size: int, alpha: float, bandwidth: float, gamma: float = 0.0, name: str = "switch") -> Topology:
    """A switch that never blocks, with a port out and a port in for every rank: an NVSwitch, or as formulas have it."""
    check_world_size(world_size)
    return Topology(
        name,
        (world_size,),
        alpha=np.repeat([float(alpha), 0.0], world_size),
        bandwidth=np.full(2 * world_size, float(bandwidth)),
        route=lambda src, dst: np.stack([src, world_size + dst]),
        label=lambda link: f"rank {link % world_size} {'in' if link >= world_size else 'out'}",
        gamma=gamma,
    )


def fully_connected(world_size: int, alpha: float, bandwidth: float, gamma: float = 0.0) -> Topology:
    """A wire from every rank to every other."""
    check_world_size(world_size)
    return Topology(
        "fully connected",
        (world_size,),
        alpha=np.full(world_size**2, float(alpha)),
        bandwidth=np.full(world_size**2, float(bandwidth)),
        route=lambda src, dst: (src * world_size + dst)[None],
        label=lambda link: f"rank {link // world_size} to {link % world_size}",
        gamma=gamma,
    )


def bus(world_size: int, alpha: float, bandwidth: float, gamma: float = 0.0, name: str = "bus") -> Topology:
    """One link that every message crosses: ranks that copy through the memory of one computer."""
    check_world_size(world_size)
    return Topology(
        name,
        (world_size,),
        alpha=np.full(1, float(alpha)),
        bandwidth=np.full(1, float(bandwidth)),
        route=lambda src, dst: np.zeros((1, len(src)), dtype=np.int64),
        label=lambda link: "bus",
        gamma=gamma,
    )


def torus(shape: tuple[int, ...], alpha: float, bandwidth: float, gamma: float = 0.0, wrap: bool = True) -> Topology:
    """A grid in which each rank has a link to both neighbours in every dimension; ``wrap`` joins the ends.

    ``torus((8,))`` is a ring of NVLinks, ``torus((16, 16, 16))`` a TPU pod. Ranks are numbered row by row. Routing is
    by dimension: a message goes along the last dimension first, then along the one before, each the shorter way round.
    """
    shape = tuple(shape)
    for side in shape:
        check_world_size(side)
    ranks = prod(shape)

    def route(src, dst):
        start, end = np.unravel_index(src, shape), np.unravel_index(dst, shape)
        here, hops = list(start), []
        for d in reversed(range(len(shape))):
            side, away = shape[d], end[d] - start[d]
            if wrap:
                away = (away + (side - 1) // 2) % side - (side - 1) // 2
            step = np.arange(np.abs(away).max(initial=0))[:, None]
            place = np.ravel_multi_index(here[:d] + [(start[d] + np.sign(away) * step) % side] + here[d + 1 :], shape)
            hops.append(np.where(step < np.abs(away), (2 * d + (away < 0)) * ranks + place, NO_LINK))
            here[d] = end[d]
        return np.concatenate(hops)

    def label(link):
        dimension, backwards = divmod(link // ranks, 2)
        return f"rank {link % ranks} {'-' if backwards else '+'} along dimension {dimension}"

    links = 2 * len(shape) * ranks
    name = f"{'x'.join(map(str, shape))} {'torus' if wrap else 'mesh'}"
    return Topology(name, shape, np.full(links, float(alpha)), np.full(links, float(bandwidth)), route, label, gamma)


def mesh(shape: tuple[int, ...], alpha: float, bandwidth: float, gamma: float = 0.0) -> Topology:
    """A torus without the links that join the ends."""
    return torus(shape, alpha, bandwidth, gamma, wrap=False)


def cluster(
    node: Topology,
    nodes: int,
    alpha: float,
    bandwidth: float,
    nics: int = 1,
    nodes_per_leaf: int | None = None,
    oversubscription: float = 1.0,
    spines: int = 1,
    leaf_alpha: float = 0.0,
    name: str = "cluster",
) -> Topology:
    """``nodes`` copies of the topology ``node``, joined through their network cards.

    A message between nodes leaves by its sender's card and enters by its receiver's; ``alpha`` and ``bandwidth`` are a
    card's, each way. The ranks of a node share its ``nics`` cards in equal runs of neighbours. The link from a rank to
    its card is not modelled: if it is narrower than the card, give its bandwidth.

    Without ``nodes_per_leaf`` all cards meet in one switch that never blocks. With it, that many nodes share a leaf
    switch, and a message to another leaf also crosses an uplink and a downlink, ``leaf_alpha`` each. A leaf's uplinks
    together carry the bandwidth of its cards divided by ``oversubscription``. There are ``spines`` of them. A message
    takes the one whose number is the number of its receiver's card modulo ``spines``, however busy that uplink is. One
    spine shares the load perfectly.

    Raises ValueError for cards that the ranks cannot share, for leaves of unequal size, and for ``oversubscription`` or
    ``spines`` below 1.
    """
    check_world_size(nodes)
    ranks, per_leaf = node.world_size, nodes_per_leaf or nodes
    if nodes_per_leaf is not None and nodes_per_leaf < 1:
        raise ValueError(f"nodes_per_leaf is {nodes_per_leaf}; choose a divisor of the {nodes} nodes")
    if not 1 <= nics <= ranks:
        raise ValueError(f"nics is {nics}; the {ranks} ranks of a node share 1 to {ranks} cards")
    if nodes % per_leaf:
        raise ValueError(f"nodes_per_leaf is {per_leaf}; choose a divisor of the {nodes} nodes")
    if not (oversubscription >= 1 and spines >= 1):
        raise ValueError(f"oversubscription is {oversubscription} and spines {spines}; give at least 1 of each")

    uplinks = nodes // per_leaf * spines if nodes_per_leaf else 0
    uplink_bandwidth = per_leaf * nics * bandwidth / oversubscription / spines
    kinds = [  # links are numbered in this order: name, how many, alpha, bandwidth
        ("card {} out", nodes * nics, alpha, bandwidth),
        ("card {} in", nodes * nics, 0.0, bandwidth),
        ("uplink {}", uplinks, leaf_alpha, uplink_bandwidth),
        ("downlink {}", uplinks, leaf_alpha, uplink_bandwidth),
    ]
    names, counts, alphas, bandwidths = zip(*kinds, strict=True)
    inside = nodes * len(node.alpha)
    first = inside + np.cumsum([0, *counts[:-1]])

    def route(src, dst):
        (a, card_a), (b, card_b) = ((r // ranks, r // ranks * nics + r % ranks * nics // ranks) for r in (src, dst))
        leaf_a, leaf_b, spine = a // per_leaf, b // per_leaf, card_b % spines
        local = node.links_crossed(src % ranks, dst % ranks)
        within = np.where((a == b) & (local != NO_LINK), a * len(node.alpha) + local, NO_LINK)
        cards = np.where(a != b, [first[0] + card_a, first[1] + card_b], NO_LINK)
        leaves = [first[2] + leaf_a * spines + spine, first[3] + leaf_b * spines + spine]
        between = np.where(leaf_a != leaf_b, leaves, NO_LINK)
        return np.concatenate([within, cards[:1], between, cards[1:]])

    def label(link):
        if link < inside:
            return f"node {link // len(node.alpha)}: {node.label(link % len(node.alpha))}"
        kind = int(np.searchsorted(first, link, side="right")) - 1
        return names[kind].format(link - first[kind])

    return Topology(
        name,
        (nodes, ranks),
        alpha=np.concatenate([np.tile(node.alpha, nodes), np.repeat(alphas, counts)]),
        bandwidth=np.concatenate([np.tile(node.bandwidth, nodes), np.repeat(bandwidths, counts)]),
        route=route,
        label=label,
        gamma=node.gamma,
        inside=inside,
    )
