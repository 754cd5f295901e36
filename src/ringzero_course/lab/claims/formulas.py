"""What the library's formulas give, for claims of ``gives``."""

from collections.abc import Callable

from ringzero.costs.page import alpha_beta
from ringzero.costs.page.coefficients import COEFFICIENTS


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
