"""Lab 03: what a collective costs, and what a plan does. Each function is compared with the library's formula.

Cases leave room for rounding: what any order of the same sums and products gives in float64 is right.
"""

from collections import Counter
from math import ceil, floor, sqrt

from ringzero.collectives import ALGORITHMS, Round, Schedule
from ringzero.costs.page import alpha_beta, memory
from ringzero.costs.page.coefficients import COEFFICIENTS
from ringzero_course.lab.claims.answers import gives, plain_number
from ringzero_course.lab.claims.values import number
from ringzero_course.lab.runs import Run
from ringzero_course.lab.subjects.plain import on_paper, whole_number

PAIR = ("rounds", "share")
ALL_REDUCES = ALGORITHMS["all_reduce"]


def counted(schedule: Schedule) -> tuple[int, float]:
    """The rounds of a schedule, and the busiest link's part of the buffer, added up over them."""
    most = (max(Counter(end for t in r for end in ((t.src, "out"), (t.dst, "in"))).values()) for r in schedule.rounds)
    return len(schedule.rounds), sum(most) / schedule.chunks


@on_paper(gives(PAIR, counted))
def count():
    gathered = Round(src=[1, 2, 3], dst=[0, 0, 0], chunk=[1, 2, 3], reduce=False)  # rank 0 only receives,
    handed_out = Round(src=[2, 2, 2], dst=[1, 3, 4], chunk=[1, 2, 2], reduce=False)  # and here it does nothing
    busy = Schedule("broadcast", "two rounds", 5, 4, (gathered, handed_out))
    draw = yield {
        "the ring on 3 ranks: 4 rounds, 4/3 of the buffer": [(ALL_REDUCES["ring"](3),)],
        "halving-doubling on 8 ranks: several chunks in a message": [(ALL_REDUCES["rabenseifner"](8),)],
        "the busiest link is one into a rank, then one out of another: 3/4 twice": [(busy,)],
        "a single rank: no rounds, and nothing sent": [(ALL_REDUCES["ring"](1),)],
    }
    every = [each for kind in ("all_reduce", "broadcast", "gather", "all_to_all") for each in ALGORITHMS[kind].values()]
    yield {"other schedules, also with links of different loads": [(each(draw.randrange(2, 13)),) for each in every]}


def cost_of(algorithm, most):
    """The specification of ``(rounds, share)``, a function of N, for an all-reduce on up to ``most`` ranks."""

    @on_paper(gives(PAIR, lambda n: COEFFICIENTS["all_reduce"][algorithm](n)[:2]))
    def cost():
        draw = yield {
            "2, 8 and 1 ranks": [(2,), (8,), (1,)],
            "3, 5, 6 and 1,000 ranks: no powers of two": [(3,), (5,), (6,), (1000,)],
        }
        power, many = 2 ** draw.randrange(6, 11), most - draw.randrange(100, 1000)
        others = (*draw.sample(range(7, 64), 20), power - 1, power, power + 1, many)
        yield {"other numbers of ranks, around a power of two, and very many": [(n,) for n in others]}

    return cost


# A ring may be added up round by round, and a logarithm in floats is exact enough up to there.
ring_cost = cost_of("ring", 10**6)
tree_cost = cost_of("binomial", 2**40)
doubling_cost = cost_of("recursive_doubling", 2**40)
halving_doubling_cost = cost_of("rabenseifner", 2**40)


def they_cross_there(run: Run) -> str | None:
    """The size was returned at which two costs take the same time; None where there is none above 0."""
    (rounds, share), (other_rounds, other_share), alpha, beta = run.case.args
    size, more, less = run.returned[0], (other_rounds - rounds) * alpha, (share - other_share) * beta
    if more * less <= 0:
        return None if size is None else f"returned {size!r}, not None: the two do not cross above 0"
    return number("the size", size, more / less)


@on_paper(they_cross_there)
def crossover():
    doubling, ring, halving, link = (3, 3.0), (14, 1.75), (6, 1.75), (10e-6, 1e-10)
    never = [(ring, halving, *link), ((6, 2.0), (12, 12.0), *link)]
    draw = yield {
        "recursive doubling and the ring on 8 ranks": [(doubling, ring, *link)],
        "and the other way round": [(ring, doubling, *link)],
        "the ring and halving-doubling do not cross, nor two of which one is better in both": never,
        "nor do any two where a message itself takes no time: they meet at 0 bytes": [(doubling, ring, 0.0, 1e-10)],
    }

    def cost():
        return draw.randrange(2, 130), draw.uniform(0.1, 3)

    others = [(cost(), cost(), 10 ** draw.uniform(-9, -4), 10 ** draw.uniform(-12, -8)) for _ in range(20)]
    alike = [(ring, ring, *link), (doubling, (3, 2.0), *link), ((14, 2.0), ring, *link)]
    yield {"other pairs, latencies and bandwidths": others, "two that are alike, or take as many rounds": alike}


@whole_number
def none_is_faster(chunks: int, n: int, size: float, alpha: float, beta: float) -> str | None:
    """With no other number of pieces the chain would broadcast faster."""

    def duration(k):
        return (n - 2 + k) * (alpha + size * beta / k)

    turn = max(1.0, sqrt((n - 2) * size * beta / alpha))  # where the derivative is 0
    best = min(floor(turn), ceil(turn), key=duration)
    mine, least = duration(chunks), duration(best)
    longer = f"{100 * (mine / least - 1):.3g} % longer"
    return None if mine <= least * (1 + 1e-9) else f"K = {chunks} takes {mine:.4g} s, {longer} than K = {best}"


@on_paper(none_is_faster)
def best_chunks():
    draw = yield {
        "1 GB on 8 ranks": [(8, 10**9, 5e-6, 1e-11)],
        "1 kB on 8 ranks": [(8, 1_000, 5e-6, 1e-11)],
        "2 ranks: nobody passes anything on": [(2, 10**9, 5e-6, 1e-11)],
        "3 ranks, 21 bytes of 0.1 s each, α = 1 s": [(3, 21, 1.0, 0.1)],
    }
    some = [(draw.randrange(3, 65), draw.randrange(10**6, 10**9), 1e-5, 1e-10) for _ in range(8)]
    yield {
        "other ranks and sizes, and very many pieces": [*some, (draw.randrange(500, 1000), 10**11, 1e-6, 1e-11)],
        "where one piece more or less is easily told": [(n, size, 1.0, 1.0) for n in (3, 4, 6) for size in range(8)],
    }


def by_definition(line: str, collective: str, n: int) -> list[float]:
    """algbw and busbw of a line of nccl-tests."""
    size, seconds = float(line.split()[0]), 1e-6 * float(line.split()[5])
    algbw = alpha_beta.algorithm_bandwidth(size, seconds)
    return [algbw / 1e9, algbw / 1e9 * alpha_beta.bus_bandwidth_factor(collective, n)]


@on_paper(gives(("algbw", "busbw"), by_definition))
def bandwidths():
    line = "    33554432       8388608     float     sum      -1  2943.25   11.40   11.40"
    draw = yield {
        "the line above": [(line, "all_reduce", 2)],
        "had it been 8 ranks": [(line, "all_reduce", 8)],
        "or an all-gather on 8 ranks": [(line, "all_gather", 8)],
        "or a broadcast or a reduce on 3 ranks": [(line, "broadcast", 3), (line, "reduce", 3)],
    }

    def of_halves(more=""):
        size = 2 * draw.randrange(10**3, 10**8)
        return f"{size} {size // 2} half none 0 {draw.randrange(300, 9999) / 16} 0 0{more}"

    kinds = [kind for kind, _ in alpha_beta.BUS_BANDWIDTH_FACTORS if kind != "sendrecv"]
    yield {
        "eight collectives, numbers of two bytes": [(of_halves(), k, draw.randrange(3, 1025)) for k in kinds * 2],
        "a line with more columns, a single rank": [(of_halves("  0  99.5  0  0  0"), k, 1) for k in kinds],
    }


@on_paper(gives("the memory in bytes", memory.model_state_bytes))
def state_bytes():
    draw = yield {  # Rajbhandari et al., "ZeRO", 2020, figure 1
        "120 GB without ZeRO, as published": [(7_500_000_000, 0, 64)],
        "31.4 GB at stage 1, 16.6 at stage 2": [(7_500_000_000, 1, 64), (7_500_000_000, 2, 64)],
        "1.9 GB at stage 3": [(7_500_000_000, 3, 64)],
        "1,001 parameters on 5 ranks and on one, not rounded": [(1_001, s, n) for s in (1, 2, 3) for n in (5, 1)],
    }
    models = [draw.randrange(10**3, 10**10) for _ in range(8)]
    yield {
        "other models and numbers of ranks": [(m, s, draw.randrange(2, 1025)) for m in models for s in range(4)],
        "on one rank no stage saves anything": [(m, s, 1) for m in models for s in range(4)],
    }


def the_fewest(run: Run) -> str | None:
    """The smallest number of ranks on which the states fit was returned; None where no number is enough."""
    params, stage, room = run.case.args
    divided = (0, 12, 14, 16)[stage] * params
    left = room - (16 * params - divided)  # for a rank's part of what is divided
    right = 1 if left >= divided else -(-divided // left) if divided and left > 0 else None
    got = plain_number(run.returned[0])
    if got == right and type(got) is type(right):
        return None
    return f"stage {stage}: returned {got!r}, " + (f"expected {right}" if right else "and no number of ranks is enough")


@on_paper(the_fewest)
def least_ranks():
    draw = yield {
        "GPT-3 on GPUs of 141 GB, at stages 0, 1 and 2": [(175 * 10**9, stage, 141 * 10**9) for stage in range(3)],
        "and at stage 3": [(175 * 10**9, 3, 141 * 10**9)],
        "7.5 billion parameters in 34 GB, at each stage": [(7_500_000_000, stage, 34 * 10**9) for stage in range(4)],
        "2 billion in 32 GB: they just fit on one": [(2 * 10**9, stage, 32 * 10**9) for stage in range(4)],
    }
    # No number of ranks fits to the byte, where a sum of floats could be on either side.
    others = [(10**7 * draw.randrange(10, 1000), 10**7 * draw.randrange(10, 9000) + 5_000_001) for _ in range(8)]
    one = draw.randrange(10**9, 10**10)
    sevenths = 7 * one + draw.randrange(1, 7)
    yield {
        "other models and memories": [(params, stage, room) for params, room in others for stage in range(4)],
        "a model that just fits on 16, and one on ten thousand or more": [(one, 3, one), (one, 1, 4 * one + 10**6 + 1)],
        "on 7 ranks a part of a byte is missing": [(sevenths, 3, 16 * sevenths // 7)],
        "no room for any part, however small": [(one, 0, 2 * one), (one, 1, 4 * one), (one, 2, 2 * one)],
    }
