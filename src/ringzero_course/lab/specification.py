"""What a student's function must be. A specification declares the rows of a check: it is a generator function.

    @of(harness=train, built_from=(LIBRARY,))
    def stage_1(check):
        check.that("two steps are those of torch's AdamW", check.run(seed=1), as_one_process)   # what students see
        draw = yield                                                                            # what is hidden
        check.that("another model", check.run(seed=draw.randrange(10**6)), as_one_process)

``check.meets(stage_1)`` declares the rows before the ``yield``, ``check.hidden_cases()`` those after it. Their cases
are drawn from ``draw``, a ``random.Random`` of the course's secret. A lab's specifications, with what they run on the
ranks, their claims and their oracles, are a file or two in ``lab/subjects``.

The rest of this file is the specification of a collective: an outcome, a traffic, and the cases in which it is tried.

    check = Check("ring_all_reduce", points=4, world_size=WORLD_SIZE, device=DEVICE)
    check.is_the("all_reduce", traffic.ring("all_reduce"))

``OUTCOMES`` says what each collective does with the ranks' tensors. ``claims.traffic`` has the traffic of algorithms:
``ring``, ``chain``, ``flat``, ``once``, ``tree``, ``nobody_in_the_middle``. The cases that students see are the first
of each kind: N divides the size or not, the root is the first rank or the last, 1, 3 and 5 ranks, float64. Those of
hidden tests are drawn: every number of ranks to 7, sizes below N, other types, any root.
"""

import random
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import torch

from ringzero_course.lab.claims import collectives as are
from ringzero_course.lab.claims.collectives import all_of
from ringzero_course.lab.claims.traffic import Traffic
from ringzero_course.lab.runs import Claim, Run

Rows = Generator[None, random.Random, None]


def of(**settings: Any) -> Callable[[Callable[..., Rows]], Callable[..., Rows]]:
    """Have checks that meet the specification be made with these: ``harness``, ``uses``, ``built_from``, ``ranks``."""

    def with_settings(specification):
        specification.settings = settings
        return specification

    return with_settings


MANY = 10**6  # seeds that may be drawn


def other_ranks(draw: random.Random) -> tuple[int, ...]:
    """Three numbers of ranks for hidden cases: 1, and two of 2 to 5."""
    return (1, *draw.sample((2, 3, 4, 5), 2))


class Outcome(NamedTuple):
    """What a collective does: the ``claim`` about it, what it ``says``, and ``more`` that must hold, with its words."""

    says: str
    claim: Claim
    more: tuple[tuple[str, Claim], ...] = ()
    rooted: bool = False

    @property
    def whole(self) -> Claim:
        return all_of(self.claim, *(claim for _, claim in self.more))


_OTHERS = ("and the other ranks' tensors are as they were", are.the_others_are_unchanged)
OUTCOMES = {
    "broadcast": Outcome("every rank ends with the root's tensor", are.everyone_has_the_roots, rooted=True),
    "reduce": Outcome("the root ends with the sum", are.the_root_has_the_sum, (_OTHERS,), rooted=True),
    "gather": Outcome("the root ends with rank r's chunk r", are.the_root_has_every_chunk, (_OTHERS,), rooted=True),
    "scatter": Outcome(
        "rank r returns chunk r of the root's tensor",
        are.returns_the_roots_chunk,
        (
            ("it is a view of rank r's tensor, not a copy", are.returns_a_view),
            ("and nothing else in that tensor has changed", are.only_its_chunk_changes),
        ),
        rooted=True,
    ),
    "all_gather": Outcome("chunk r on every rank is the one rank r had", are.everyone_has_every_chunk),
    "reduce_scatter": Outcome(
        "rank r returns chunk r of the sum",
        are.returns_its_chunk_of_the_sum,
        (
            (
                "it is a view of rank r's tensor, not a copy",
                all_of(are.has_its_chunk_of_the_sum, are.returns_a_view),
            ),
        ),
    ),
    "all_reduce": Outcome("every rank ends with the sum", are.everyone_has_the_sum),
    "all_to_all": Outcome(
        "rank r returns everyone's chunk r, by sender",
        are.returns_everyones_chunk,
        (
            ("and the tensor is as it was", are.nothing_changes),
            ("what is returned is a new tensor, of the same type", are.returns_new_memory),
        ),
    ),
}
TYPES = (torch.float64, torch.int64, torch.bfloat16)


class Specification:
    """The function of ``check`` is the ``collective``, with that ``traffic``.

    It takes these ``options`` beside a root; of each several values may be given, which cases take in turn.
    """

    def __init__(self, check: Any, collective: str, traffic: Traffic, options: dict[str, Sequence[Any]]):
        self._check, self._outcome, self._traffic, self._options = check, OUTCOMES[collective], traffic, options
        self._count = 0

    def rows(self) -> Rows:
        self._shown()
        self._hidden((yield))

    def _shown(self) -> None:
        check, (says, claim, more, rooted) = self._check, self._outcome
        n = check.world_size
        even, uneven, again = self._run(480 * n), self._run(480 * n + 3, root=n - 1), self._run(480 * n)
        check.that(says, [even, again], claim, weight=2)
        from_another = " and the root is another rank" if rooted else ""
        check.that(f"also when N does not divide the size{from_another}", uneven, claim, weight=2)
        for text, also in more:
            check.that(text, [even, uneven, again], all_of(claim, also))
        for text, limit in self._traffic:
            check.that(text, [even, uneven], limit)
        check.on_nccl(self._run(60 * n), claim)  # where a loop over elements takes 300 times as long
        others = [self._run(101, ranks=n, root=n // 2) for n in (1, 3, 5)]
        wide = self._run(99, dtype=torch.float64)
        check.that("also on 1, 3 and 5 ranks, and with float64", [*others, wide], self._outcome.whole, weight=2)

    def _hidden(self, draw: random.Random) -> None:
        def root(n):
            return draw.randrange(n)

        several = [self._run(draw.randrange(90, 130), ranks=n, root=root(n)) for n in range(1, 8)]
        n = self._check.world_size
        few = [self._run(size, root=root(n)) for size in (1, n - 1, n + 1) if size]
        kinds = [self._run(draw.randrange(90, 130), dtype=dtype, root=root(n)) for dtype in TYPES]
        of_a_root = ", from any root" if self._outcome.rooted else ""
        whole = self._outcome.whole
        self._check.that(f"1 to 7 ranks{of_a_root}", several, whole, weight=2)
        self._check.that("fewer elements than ranks, and one more", few, whole)
        self._check.that("other kinds of numbers, without loss", kinds, whole)
        for text, limit in self._traffic:
            self._check.that(f"for every N: {text}", several[1:], limit, weight=0.5)

    def _run(self, numel: int, root: int = 0, **options: Any) -> Run:
        turn = {name: values[self._count % len(values)] for name, values in self._options.items()}
        self._count += 1
        of_a_root = {"root": root} if self._outcome.rooted else {}
        run: Run = self._check.run(numel=numel, **{**turn, **of_a_root, **options})
        return run
