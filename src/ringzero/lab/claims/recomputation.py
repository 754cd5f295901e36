"""Claims about a run of ``harness.recomputation``: the same values from fewer bytes."""

from ringzero.costs import memory as formulas
from ringzero.lab.claims.collectives import all_of
from ringzero.lab.claims.values import close
from ringzero.lab.runs import Claim, Run

GRADIENTS = ("gradient of the input", "gradient of the parameters")


def runs_twice(run: Run) -> str | None:
    """Each function runs once without recording a graph, and once more with."""
    runs, calls = run.reports[0].yours["runs"], _calls(run)
    if len(runs) != 2 * calls:
        return f"in {calls} call{'s' * (calls > 1)} the function ran {len(runs)} times, expected twice in each"
    if True in runs[:calls]:
        return "the first run recorded a graph: everything inside was kept"
    return "the second run recorded no graph: torch.enable_grad() makes it" if False in runs[calls:] else None


def _calls(run):
    """How often the chain's layers are called."""
    return run.case.args[0] * run.option("calls", 1)


def runs_twice_and_gives_the_same(*what: str) -> Claim:
    """A claim: ``what`` is the same as without recomputation; without a second run that would prove nothing."""

    def the_same(run):
        plain, yours = run.reports[0].plain, run.reports[0].yours
        for name in what:
            if why := close(f"the {name}", [yours[name]], [plain[name]], 1e-5):
                return why.removeprefix("on rank 0 ") + _hint(run, name, yours[name])
        return None

    return all_of(runs_twice, the_same)


def _hint(run, name, got):
    """What is most often the cause where this is wrong."""
    if name == "gradient of the input" and got is None:
        return " Backward returns one gradient for each argument of forward."
    if name == "gradient of the parameters" and not got.any():
        return ", and all are 0: torch.autograd.backward(output, gradient) gives parameters theirs"
    if name in GRADIENTS and run.case.args[-1]:
        return "; the output is right: does the second run draw the random numbers of the first?"
    if name in GRADIENTS and run.option("calls", 1) > 1:
        return "; does each backward pass find what its own call has kept?"
    return ""


gives_the_same_output = runs_twice_and_gives_the_same("output")
gives_the_same_gradients = runs_twice_and_gives_the_same("output", *GRADIENTS)
leaves_the_generator_as_it_was = runs_twice_and_gives_the_same("random numbers that follow")


def holds_what_is_predicted(run: Run) -> str | None:
    """All that is held after the forward pass counts, however it is held; and nothing of it stays after backward."""
    layers, batch, sequence, hidden, heads, _ = run.case.args
    yours, plain, calls = run.reports[0].yours, run.reports[0].plain, run.option("calls", 1)
    predicted = calls * formulas.activation_bytes(
        batch * sequence,
        sequence,
        hidden,
        heads,
        layers,
        bytes_per_element=4,
        mask_bytes=yours["mask"],
        recomputation=run.option("recomputation"),
    )
    if yours["held"] > 1.02 * predicted + 6_000 * _calls(run):  # a generator's state has 5,056 bytes
        without = f"without recomputation {plain['held']:,}"
        return f"{yours['held']:,} bytes are held after the forward pass, expected {predicted:,.0f}; {without}"
    more = yours["left"] - plain["left"]
    if more > 6_000 * _calls(run):
        return f"after the backward pass {more:,} bytes are still held that nobody needs any more"
    return None


def the_peak_falls(run: Run) -> str | None:
    """The peak of the step is at most four fifths of that without recomputation."""
    plain, yours = run.reports[0].plain["peak"], run.reports[0].yours["peak"]
    return None if yours < 0.8 * plain else f"the peak is {yours:,} bytes, and {plain:,} without recomputation"
