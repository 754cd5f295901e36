"""Lab 07: what hides behind what. Formulas, the clock of a backward pass, a late rank, a plan; and a backward pass.

Where a function returns the best of something, cases are such that rounding does not decide, or that there is none.
"""

import math
import random
import statistics
import time
from collections import namedtuple
from collections.abc import Callable
from functools import lru_cache

import torch
import torch.distributed as dist

from ringzero.costs import offload, pipeline
from ringzero.costs.page import overlap as ratios
from ringzero.costs.page.coefficients import COEFFICIENTS
from ringzero.record import recorder, spans
from ringzero.record.operation import COMMUNICATION, COMPUTE, Operation
from ringzero.steps import planner
from ringzero.steps.plan import Cluster, Plan, estimate
from ringzero.steps.transformer import MODELS
from ringzero_course.lab.claims.answers import counts, gives, is_whole_number, plain_number
from ringzero_course.lab.claims.collectives import all_of, given
from ringzero_course.lab.claims.oracle import Values, in_order, is_right
from ringzero_course.lab.claims.traffic import operations_are
from ringzero_course.lab.claims.values import apart, in_short, numbers, one_value
from ringzero_course.lab.runs import Run
from ringzero_course.lab.specification import of, other_ranks
from ringzero_course.lab.subjects.plain import on_paper

MB = 1_000_000


def as_list(value: object) -> object:
    """A tensor or an array as a list; anything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


# ---- data and tensor parallelism


@on_paper(gives("the number of tokens", ratios.min_tokens_for_data_parallel))
def least_tokens():
    draw = yield {
        "8 H100s over NVLink, 16 bits": [(989e12, 450e9, 8, 2)],
        "2,550 tokens for very many TPU v5p, as published": [(4.59e14, 1.8e11, 10**6, 2)],
        "2 ranks and 32 bits, 3 ranks and 8 bits": [(1e12, 1e9, 2, 4), (3e13, 7e9, 3, 1)],
        "one rank needs no tokens": [(1e12, 1e9, 1, 2)],
    }
    others = [(draw.uniform(1e12, 1e15), draw.uniform(1e9, 1e12), draw.randrange(2, 1000), e) for e in (1, 2, 4, 8) * 3]
    yield {"other numbers of ranks and types": others, "one rank, other numbers": [(7e14, 3e11, 1, 4)]}


RING = COEFFICIENTS["all_reduce"]["ring"]


@on_paper(gives("the bandwidth", lambda size, n, *link: ratios.effective_bandwidth(RING(n), size, *link)))
def reached():
    draw = yield {
        "25 MB on 8 ranks": [(25e6, 8, 5e-6, 1 / 450e9)],
        "without latency it is the link's": [(25e6, 8, 0.0, 1e-9)],
        "600 bytes on 3 ranks, 1 MB on 1,000": [(600, 3, 1e-5, 1e-9), (1e6, 1000, 1e-5, 1e-9)],
    }
    sizes = [10 ** draw.uniform(3, 9) for _ in range(9)]
    yield {"other sizes and numbers of ranks": [(size, draw.randrange(2, 99), 1e-5, 1e-10) for size in sizes]}


def degree(flops: float, bandwidth: float, width: int, element: int) -> int:
    """The largest T with element (T - 1) / bandwidth at most 2 width / flops."""
    return 1 + math.floor(2 * width * bandwidth / (element * flops))


@on_paper(counts(degree))
def largest_degree():
    draw = yield {
        "28,672 columns on H100s with NVLink": [(989e12, 450e9, 28672, 2)],
        "8,192 columns, also over a network of 50 GB/s": [(989e12, 450e9, 8192, 2), (989e12, 50e9, 8192, 2)],
        "53,248 columns on GPUs that compute slowly, 8 and 32 bits": [(120e12, 900e9, 53248, e) for e in (1, 4)],
        "where on the largest number both take exactly as long": [(2.0**40, 2.0**30, 7 << 10, 2)],
    }
    some = [(draw.uniform(1e14, 1e15), draw.uniform(1e10, 1e12), draw.randrange(10**3, 10**5)) for _ in range(5)]
    others = [(*each, element) for each in some for element in (1, 2, 4)]
    just = (2.0**43, 2.0**33, draw.choice((3, 7, 15)) << 11, 4)  # T is a power of two, by which division is exact
    yield {"other links, widths and types, or just as long": [*others, just]}


# ---- the clock of a backward pass

Bucket = namedtuple("Bucket", "size first_layer begin end")  # begin and end of its all-reduce


def clock(backwards: list[float], sizes: list[int], cap: float, alpha: float, beta: float) -> list[Bucket]:
    """The buckets of a backward pass, in the order in which they leave."""
    found: list[Bucket] = []
    now, free, size = 0.0, 0.0, 0
    for layer in reversed(range(len(sizes))):
        now, size = now + backwards[layer], size + sizes[layer]
        if size >= cap or layer == 0:
            begin = max(now, free)
            free = begin + alpha + beta * size
            found.append(Bucket(size, layer, begin, free))
            size = 0
    return found


def all_reduces_run_as_scheduled(run: Run) -> str | None:
    """``(begin, end)`` of each bucket's all-reduce was returned."""
    expected, got = clock(*run.case.args), as_list(run.returned[0])
    if not isinstance(got, (list, tuple)) or len(got) != len(expected):
        many = f"{len(got)} all-reduces" if isinstance(got, (list, tuple)) else in_short(got)
        return f"returned {many}, expected {len(expected)}, each as (begin, end)"
    for i, (mine, bucket) in enumerate(zip(got, expected, strict=True)):
        names = f"the begin of all-reduce {i}", f"the end of all-reduce {i}"
        if why := numbers(names, mine, (bucket.begin, bucket.end)):
            return why
    return None


UNLIKE = [0.004, 0.020, 0.001, 0.007, 0.002], [500_000, 3 * MB, 40_000, 2 * MB, 9_000]  # seconds and bytes


def any_layers(draw, most=12):
    """Seconds and bytes of some layers, whole milliseconds: where one cap is better than the next is up to chance."""
    layers = range(draw.randrange(1, most))
    return [draw.randrange(1, 20) / 1000 for _ in layers], [draw.choice((4_000, MB, 3 * MB, 7 * MB)) for _ in layers]


@on_paper(all_reduces_run_as_scheduled)
def all_reduces():
    fast, slow = (1e-3, 4e-9), (1e-3, 20e-9)
    draw = yield {
        "a bucket for each layer": [(*UNLIKE, 1, *fast)],
        "buckets of two layers and more": [(*UNLIKE, MB, *fast), ([0.01] * 4, [MB] * 4, 2 * MB, *fast)],
        "one bucket": [(*UNLIKE, 10 * MB, *fast)],
        "a slow link, on which buckets queue": [(*UNLIKE, 1, *slow)],
        "three layers fill a bucket, and one is left": [([0.01] * 4, [MB] * 4, 2.5 * MB, *fast)],
        "a single layer, smaller than the bucket": [([0.005], [70_000], MB, *slow)],
    }
    yield {"other models and caps": [(*any_layers(draw), draw.choice((5_000, MB, 9 * MB)), *fast) for _ in range(40)]}


def no_other_cap_ends_sooner(run: Run) -> str | None:
    """With the cap that was returned the last all-reduce ends first."""
    backwards, sizes, caps, alpha, beta = run.case.args
    got = one_value(run.returned[0])
    if got not in caps:
        return f"returned {got!r}, which is none of the caps"
    ends = {cap: clock(backwards, sizes, cap, alpha, beta)[-1].end for cap in caps}
    best = min(ends, key=lambda cap: ends[cap])
    if ends[got] <= ends[best] * (1 + 1e-9):
        return None
    mine, right = apart(ends[got], ends[best])
    return f"with a cap of {got:,} bytes the step ends after {mine} s, with {best:,} after {right} s"


@on_paper(no_other_cap_ends_sooner)
def best_cap():
    caps = [MB, 2 * MB, 4 * MB, 8 * MB, 16 * MB, 64 * MB]
    forty = [0.002] * 40, [1_500_000] * 40
    draw = yield {
        "40 layers of 1.5 MB": [(*forty, caps, 1e-3, 1e-9)],
        "without latency": [(*forty, caps, 0.0, 1e-9)],
        "where every message takes 20 ms": [(*forty, caps, 20e-3, 1e-10)],
        "layers that are not alike, other caps, in no order": [(*UNLIKE, [700_000, 9 * MB, 2_500_000], 4e-3, 3e-9)],
    }
    links = [(draw.choice((1e-4, 3e-3, 6e-3)), draw.choice((2e-10, 1e-9, 3e-9))) for _ in range(60)]
    yield {"60 other models and links": [(*any_layers(draw), draw.sample(caps, 5), *link) for link in links]}


def exposed_seconds(operations: list[Operation]) -> float:
    """Seconds of one rank in which it communicates and computes nothing."""

    def of(stream):
        return spans.union((op.start, op.last) for op in operations if op.stream == stream)

    return spans.length(spans.without(of(COMMUNICATION), of(COMPUTE)))


def record(computes, sends):
    """Of a rank, from pairs of a begin and an end."""
    ops = [Operation("backward", 0, begin, None, end, COMPUTE) for begin, end in computes]
    return ops + [Operation("all_reduce", 0, begin, (begin + 3 * end) / 4, end, COMMUNICATION) for begin, end in sends]


@on_paper(gives("the exposed time", exposed_seconds))
def exposed():
    apart = [(1003, 1006), (1000, 1002.5), (1000.25, 1001)], [(1004, 1007 + 2**-12), (1000.125, 1004.5)]
    draw = yield {
        "an all-reduce that ends after the computing": [(record([(0, 4)], [(1, 2), (3, 6)]),)],
        "all hidden": [(record([(0, 4), (4, 8)], [(3, 5), (5, 6)]),)],
        "two at once, after the computing": [(record([(0, 2)], [(1, 5), (3, 6)]),)],
        "nothing computes": [(record([], [(0, 1), (4, 6)]),)],
        "not in order, computing inside computing, a gap, parts of seconds": [(record(*apart)[::-1],)],
    }

    def some(least=0):  # moments between the ticks of a clock; sums of them are exact
        begins = [draw.randrange(40_000) / 2**13 for _ in range(draw.randrange(least, 6))]
        return [(begin, begin + draw.randrange(1, 9_000) / 2**13) for begin in begins]

    yield {"40 other records": [(record(some(1), some() if i else []),) for i in range(40)]}


def prefetched(gathers: list[float], forwards: list[float], ahead: int) -> float:
    """Seconds of a forward pass of ZeRO-3 that gathers ``ahead`` layers beyond the one that computes."""
    return offload.window_seconds(gathers, forwards, min(ahead + 1, len(gathers)))


@on_paper(gives("the time", prefetched))
def forward_pass():
    unlike = [0.5, 4, 1, 1, 2.5, 3], [3, 1, 6, 0.25, 2, 1]
    draw = yield {
        "nothing ahead": [([1, 1, 1, 1], [2, 2, 2, 2], 0)],
        "one ahead, computing takes longer": [([1, 1, 1, 1], [2, 2, 2, 2], 1)],
        "one ahead, gathering takes longer": [([3, 3, 3, 3], [2, 2, 2, 2], 1)],
        "six layers that are not alike, none to two ahead": [(*unlike, ahead) for ahead in (0, 1, 2)],
        "a single layer, and more ahead than there are layers": [([2], [3], 4)],
    }

    def layers():
        return [[draw.uniform(0, 3) for _ in range(number)] for number in [draw.randrange(1, 11)] * 2]

    yield {"40 other models": [(*layers(), draw.randrange(5)) for _ in range(40)]}


def micro_batches(stages: int, share: float, pieces: int) -> int:
    """The fewest m with (stages - 1) / (pieces m + stages - 1) at most ``share``."""
    return max(1, math.ceil((stages - 1) * (1 - share) / (share * pieces)))


@on_paper(counts(micro_batches))
def least_micro_batches():
    draw = yield {
        "8 stages, at most 12 % idle, with 1 piece and with 4": [(8, 0.12, 1), (8, 0.12, 4)],
        "5 stages, at most half of the step": [(5, 0.5, 1)],
        "3 stages of 3 pieces, and 100 stages": [(3, 0.07, 3), (100, 0.011, 2)],
        "one stage never waits": [(1, 0.05, 1)],
    }
    others = [(draw.randrange(2, 20), draw.uniform(0.02, 0.7), pieces) for pieces in (1, 2, 3) * 6]
    just = [(draw.randrange(2, 20), share, pieces) for share in (0.5, 0.25) for pieces in (1, 2)]
    yield {"other pipelines": [*others, (1, 0.5, 2), (300, draw.uniform(0.001, 0.002), 1)], "just the share": just}


@on_paper(counts(lambda i, stages, micro_batches: pipeline.micro_batches_kept(stages, micro_batches, i)))
def kept():
    draw = yield {
        "each of 4 stages, 16 micro-batches": [(i, 4, 16) for i in range(4)],
        "fewer micro-batches than stages": [(i, 5, 3) for i in range(5)],
    }
    sizes = [(draw.randrange(1, 40), draw.randrange(1, 40)) for _ in range(20)]
    yield {"other pipelines": [(draw.randrange(stages), stages, m) for stages, m in sizes]}


def late_rank(enters: list[list[float]], worth: float) -> tuple[int, float] | None:
    """``(rank, seconds it is charged)``. The last one is charged with its time less the median of the others'."""
    charges = [0.0] * len(enters[0])
    for times in enters:
        charges[times.index(max(times))] += max(times) - statistics.median(sorted(times)[:-1])
    most = max(charges)
    return None if most < 0.6 * sum(charges) or most < worth * len(enters) else (charges.index(most), most)


def names_the_straggler(run: Run) -> str | None:
    """The rank for which the others wait and what it is charged were returned, or None where there is no such rank."""
    expected, got = late_rank(*run.case.args), as_list(run.returned[0])
    if expected is None or got is None:
        who = f"the others wait for rank {expected[0]}" if expected else "there is no straggler"
        return None if got is expected else f"returned {got!r}, and {who}"
    return numbers(("the late rank", "what it is charged"), got, expected)


def times(draw, ranks, late, by, every=1):
    """20 collectives, one each 10 ms. Ranks of ``late`` take turns and are ``by`` seconds late, ``every`` so many."""
    found = [[0.01 * i + draw.uniform(0, 0.0002) for _ in range(ranks)] for i in range(20)]
    for turn, row in enumerate(found[::every] if late else ()):
        row[late[turn % len(late)]] += by
    return found


@on_paper(names_the_straggler)
def straggler():
    seen, worth = random.Random(0), 0.0005
    often = [[0, 1, 9, 0], [20, 20, 21, 20], [30, 30, 30, 31], [40, 40, 40, 41], [50, 50, 50, 51]]
    just = [[[0, 0, 0, late], [10, 10, 12, 10]] for late in (2, 3)]  # half of all charges, and 60 %
    draw = yield {
        "rank 0 is early and rank 3 is late": [([[0, 5, 6, 9], [10, 15, 16, 20]], 1)],
        "rank 2 is late each time": [(times(seen, 4, [2], 0.003), worth)],
        "nobody is late": [(times(seen, 4, [], 0.0), worth)],
        "the ranks take turns": [(times(seen, 4, [0, 1, 2, 3], 0.003), worth)],
        "two ranks are late at once": [([[0, 7, 1, 9], [10, 18, 11, 17], [20, 20, 20, 26]], 1)],
        "2 ranks": [([[5.0, 5.5], [6.0, 6.75], [8.5, 8.0]], 0.125)],
        "one is last most often, by little; another one once, by much": [(often, 1)],
        "just 60 % of all charges, or less": [(enters, 1) for enters in just],
        "just what is worth mending, or less": [([[0, 0, 0, 1], [9, 9, 9, late]], 1) for late in (10, 9.5, 9)],
    }
    injected = [(times(draw, n, [draw.randrange(n)], draw.uniform(0.001, 0.005)), worth) for n in (2, 3, 4, 5, 9) * 4]
    others = [times(draw, 5, [draw.randrange(5)], 0.02, every=4), times(draw, 4, [], 0.0), times(draw, 4, [1], 0.0003)]
    others += [times(draw, n, draw.sample(range(n), 2), 0.003) for n in (3, 4, 5)]
    seldom = "late in every fourth collective; nobody late, or by too little; two that take turns"
    yield {"20 records with one late rank": injected, seldom: [(enters, worth) for enters in others]}


class Layer:
    """A layer on a GPU, as its host sees it: ``backward()`` sleeps, and so takes no core from other ranks or messages.

    It returns a gradient that is known beforehand; the second time one that is twice as large, and so on.
    """

    def __init__(self, number: int, numel: int, seconds: float, computed: list):
        self._number, self._seconds, self._computed, self._times = number, seconds, computed, 0
        self._gradient = gradient(dist.get_rank(), number, numel).to(torch.get_default_device())

    def backward(self) -> torch.Tensor:
        begin, self._times = time.time(), self._times + 1
        with recorder.computing("backward"):
            time.sleep(self._seconds)
            found = self._times * self._gradient
        self._computed.append((self._number, begin, time.time()))
        return found


def gradient(rank: int, number: int, numel: int) -> torch.Tensor:
    """The gradient of layer ``number`` on ``rank``, on the CPU: numbers of eighths, so that sums are exact."""
    source = torch.Generator("cpu").manual_seed(1000 * rank + number)
    return torch.randint(-1000, 1000, (numel,), generator=source, device="cpu").float() / 8


def make_layers(numels: list[int], seconds: float = 0.0) -> tuple[list[Layer], list[tuple[int, float, float]]]:
    """On a rank: the layers, and the list in which they note ``(layer, begin, end)`` as they run."""
    computed: list[tuple[int, float, float]] = []
    return [Layer(number, numel, seconds, computed) for number, numel in enumerate(numels)], computed


def two_steps(backward_pass: Callable, numels: list[int], cap: float) -> dict:
    """On a rank: all ``gradients`` of two steps, read after the second, and what the layers noted in each."""
    layers, computed = make_layers(numels)
    gradients: list[torch.Tensor] = []
    seen = []
    for _ in range(2):
        found = backward_pass(layers, cap)
        if not isinstance(found, (list, tuple)):
            raise TypeError(f"backward_pass returned {in_short(found)}, not a list of gradients")
        gradients += found
        seen.append([*computed])
        computed.clear()
    return {"gradients": gradients, "computed": seen}


def means(run: Run, _: int) -> Values:
    """An oracle of ``two_steps``: the second step's gradients are twice as large."""
    found = {}
    for step in (1, 2):
        for i, numel in enumerate(run.case.args[0]):
            of_each = torch.stack([gradient(rank, i, numel) for rank in range(run.world_size)])
            found[f"the gradient of layer {i} in step {step}"] = step * of_each.mean(0)
    return {"gradients": found}


def filled(run: Run) -> list[Bucket]:
    numels, cap = run.case.args
    return clock([0.0] * len(numels), [4 * numel for numel in numels], cap, 0.0, 0.0)


def _all_reduces(run, rank):
    return [op for op in run.operations[rank] if op.kind == "all_reduce"]


def _around_its_start(run, rank):
    """A bucket leaves when its last gradient is there, before another layer begins or another bucket is waited for."""
    buckets, sent = filled(run), _all_reduces(run, rank)
    for i, op in enumerate(sent):
        step, number = divmod(i, len(buckets))
        layer = buckets[number].first_layer
        which = f"step {step + 1}: bucket {number}, full when layer {layer} was done, left"
        times = {layer: (begin, end) for layer, begin, end in run.reports[rank].computed[step]}
        yield times[layer][1], op.start, f"{which} before that"
        if layer:
            yield op.start, times[layer - 1][0], f"{which} when layer {layer - 1} had begun"
        for other in sent[step * len(buckets) : i]:
            if other.wait is not None and other.wait >= times[layer][1]:
                yield op.start, other.wait, f"{which} when another one was waited for"


def _around_its_wait(run, rank):
    """No wait begins while a layer has still to compute."""
    for computed in run.reports[rank].computed:
        for op in run.operations[rank]:
            if op.wait is not None and op.wait >= computed[0][1]:  # in this step or a later one
                itself = f": without async_op=True {op.kind} waits itself" if op.wait == op.start else ""
                waits = f"waits for its {op.kind} ({op.line}) while layers have still to compute{itself}"
                yield computed[-1][2], op.wait, waits


are_the_mean = is_right(means, "gradients")
one_all_reduce_a_bucket = given(are_the_mean)(
    operations_are(lambda run: 2 * [("all_reduce", bucket.size) for bucket in filled(run)], among=_all_reduces)
)
leaves_as_soon_as_it_is_full = given(one_all_reduce_a_bucket)(in_order(_around_its_start))
waited_for_at_the_end = given(one_all_reduce_a_bucket)(in_order(_around_its_wait))


@of(harness=two_steps, built_from=("all_reduce",))
def backward_pass(check):
    two = [check.run([500] * 6, 2_000), check.run([500] * 6, 4_000)]
    unlike = check.runs([40, 900, 3, 250, 250, 7], 1_500, ranks=(1, 3))
    both = all_of(leaves_as_soon_as_it_is_full, waited_for_at_the_end)
    check.that("every gradient is the mean, also after the next step", two, are_the_mean, weight=2)
    check.that("a bucket is one all-reduce", two, one_all_reduce_a_bucket)
    check.that("a bucket leaves before the next layer computes", two, leaves_as_soon_as_it_is_full, weight=2)
    check.that("all waits come after all computing", two, waited_for_at_the_end, weight=2)
    check.that("layers that are not alike, on 1 rank and on 3", unlike, both, weight=2)
    draw = yield
    numels = [draw.choice((7, 50, 300, 900, 1200)) for _ in range(draw.randrange(5, 9))]
    others = [*check.runs(numels, 2_000, ranks=other_ranks(draw)), check.run(numels, MB), check.run([64], 8)]
    check.that("other numbers of ranks, layers that are not alike", others, are_the_mean, weight=2)
    check.that("their buckets leave in time and are waited for at the end", others, both, weight=3)


# ---- a plan for a cluster


@lru_cache
def _best(*job):
    return planner.rank(*job).fitting[0]


def the_plan_will_do(run: Run) -> str | None:
    """A dict was returned that says how to train Llama 3 70B; it fits, and takes hardly longer than the best plan."""
    (nodes,), got, degrees = run.case.args, run.returned[0], {"data", "tensor", "pipeline"}
    choices = {"stage": (0, 1, 2, 3), "recomputation": ("none", "full")}
    if not isinstance(got, dict) or not degrees <= got.keys() <= degrees | choices.keys():
        return f"returned {in_short(got)}, not a dict with data, tensor, pipeline, and perhaps stage and recomputation"
    got = {name: plain_number(value) for name, value in got.items()}  # 2.0 is a whole number, too
    for name, value in got.items():
        if not (value in choices[name] if name in choices else is_whole_number(value, least=1)):
            return f"{name} is {value!r}, not {choices.get(name, 'a whole number from 1')}"
    job, mine = (MODELS["llama3-70b"], Cluster("H100", nodes=nodes), 32 * nodes), Plan(**got)
    if why := planner.why_not(*job, mine):
        return why
    best, found = _best(*job), estimate(*job, mine)
    if found.bytes > job[1].memory_bytes:
        return f"the plan {planner.verdict(*job, mine, best)}"
    return None if found.seconds <= 1.1 * best.seconds else f"the plan is {planner.verdict(*job, mine, best)}"


@on_paper(the_plan_will_do)
def plan():
    yield {"8 nodes: it fits, and is at most 10 % slower than the best": [(8,)], "and 4 nodes": [(4,)]}
    yield {"16 nodes": [(16,)], "32 nodes": [(32,)]}
