"""What the library's formulas give, for claims of ``gives``; and claims that recognise the best of something."""

from collections.abc import Callable

from ringzero.costs import alpha_beta
from ringzero.costs.coefficients import COEFFICIENTS
from ringzero.lab.claims.answers import is_whole_number, plain_number
from ringzero.lab.claims.values import number
from ringzero.lab.runs import Claim, Run


def rounds_and_share(collective: str, algorithm: str) -> Callable[[int], tuple[float, float]]:
    """A function of N: the rounds of the algorithm on N ranks, and the busiest link's part of the buffer over them."""

    def counted(n):
        rounds, share, _ = COEFFICIENTS[collective][algorithm](n)
        return rounds, share

    return counted


def seconds_of_an_all_reduce(algorithm: str) -> Callable[[float, int, float, float], float]:
    """A function of size in bytes, N, alpha and beta: the seconds of an all-reduce without the cost of adding."""
    coefficients = rounds_and_share("all_reduce", algorithm)
    return lambda size, n, alpha, beta: alpha_beta.seconds((*coefficients(n), 0.0), size, alpha, beta)


def both_take_the_same_time(run: Run) -> str | None:
    """At the size that was returned two costs ``(rounds, share)`` take the same time."""
    (rounds, share), (other_rounds, other_share), alpha, beta = run.case.args
    size = run.returned[0]
    if (why := number("the size", size, size if isinstance(size, (int, float)) else 1.0)) is not None:
        return why
    if size <= 0:
        return f"the size is {size:.6g}, and should be above 0"
    one, other = rounds * alpha + share * size * beta, other_rounds * alpha + other_share * size * beta
    return number("the time of the second at that size", other, one)


def there_is_none(run: Run) -> str | None:
    """Two costs that never take the same time: None was returned."""
    return None if run.returned[0] is None else f"returned {run.returned[0]!r}, not None: the two never cross"


def no_other_number_of_pieces_is_faster(run: Run) -> str | None:
    """Of the numbers of pieces near the one that was returned, none broadcasts faster along a chain of ranks."""
    n, size, alpha, beta = run.case.args
    chunks = plain_number(run.returned[0])
    if not is_whole_number(chunks, least=1):
        return f"returned {chunks!r}, not a whole number from 1"

    def duration(k):
        return (n - 2 + k) * (alpha + size * beta / k)

    others = {1, max(1, chunks // 2), 2 * chunks, *range(max(1, chunks - 2), chunks + 3)}
    best = min(others, key=duration)
    if duration(chunks) <= duration(best) * (1 + 1e-12):
        return None
    more = duration(chunks) / duration(best) - 1
    longer = f"{more:.2g} times longer" if more >= 1 else f"{100 * more:.2g} % longer"
    return f"K = {chunks} takes {duration(chunks):.4g} s, {longer} than K = {best}"


def the_largest_that_fits(needs: Callable) -> Claim:
    """A claim: of the batches that ``needs(batch, *plan)`` bytes let into the memory, the largest was returned.

    The function was called with the memory in bytes and the plan.
    """

    def claim(run):
        memory, *plan = run.case.args
        batch = plain_number(run.returned[0])
        if not is_whole_number(batch, least=0):
            return f"returned {batch!r}, not a whole number from 0"
        if batch and needs(batch, *plan) > memory:
            return f"a batch of {batch} needs {needs(batch, *plan):.6g} bytes"
        if needs(batch + 1, *plan) <= memory:
            return f"a batch of {batch + 1} needs {needs(batch + 1, *plan):.6g} bytes and would fit"
        return None

    return claim
