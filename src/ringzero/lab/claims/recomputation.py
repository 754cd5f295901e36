"""Claims about a run of ``harness.recomputation``: the same values from fewer bytes."""

from ringzero.costs import memory as formulas
from ringzero.lab.claims.collectives import all_of
from ringzero.lab.claims.values import close
from ringzero.lab.runs import Claim, Run

GRADIENTS = ("input's gradient", "parameters' gradients")


def runs_twice(run: Run) -> str | None:
    """Each function runs once without recording a graph, and once more with."""
    runs, layers = run.reports[0].yours["runs"], run.case.args[0]
    first, second = runs[:layers], runs[layers:]
    if len(runs) != 2 * layers:
        return f"the function ran {len(runs)} times for {layers} calls, expected twice each"
    if True in first:
        return "the first run recorded a graph: everything inside was kept"
    return "the second run recorded no graph" if False in second else None


def runs_twice_and_gives_the_same(*what: str) -> Claim:
    """A claim: ``what`` is the same as without recomputation; without a second run that would prove nothing."""

    def the_same(run):
        plain, yours = run.reports[0].plain, run.reports[0].yours
        return next((why for name in what if (why := close(name, [yours[name]], [plain[name]], 1e-5))), None)

    return all_of(runs_twice, the_same)


gives_the_same_output = runs_twice_and_gives_the_same("output")
gives_the_same_gradients = runs_twice_and_gives_the_same("output", *GRADIENTS)
leaves_the_generator_as_it_was = runs_twice_and_gives_the_same("random numbers that follow")


def holds_what_is_predicted(run: Run) -> str | None:
    """All that is held after the forward pass counts, however it is held: not only what autograd has saved."""
    layers, batch, sequence, hidden, heads, _ = run.case.args
    yours, plain = run.reports[0].yours, run.reports[0].plain
    predicted = formulas.activation_bytes(
        batch * sequence,
        sequence,
        hidden,
        heads,
        layers,
        bytes_per_element=4,
        mask_bytes=yours["mask"],
        recomputation=run.option("recomputation"),
    )
    if yours["held"] <= 1.02 * predicted + 6_000 * layers:  # a generator's state has 5,056 bytes
        return None
    held, expected, without = yours["held"], predicted, plain["held"]
    return f"{held:,} bytes are held after the forward pass, expected {expected:,.0f}; without it {without:,}"


def the_peak_falls(run: Run) -> str | None:
    """The peak of the step is at most four fifths of that without recomputation."""
    plain, yours = run.reports[0].plain["peak"], run.reports[0].yours["peak"]
    return None if yours < 0.8 * plain else f"the peak is {yours:,} bytes, and {plain:,} without recomputation"
