"""Claims about buckets of gradients: which parameters share one, and a run of ``harness.buckets``."""

import torch

from ringzero.lab.claims.collectives import given
from ringzero.lab.claims.traffic import operations_are
from ringzero.lab.claims.values import close_by_name
from ringzero.lab.harness.buckets import SHAPES, assignment, gradient
from ringzero.lab.runs import Run


def assigned_as_torch_does(run: Run) -> str | None:
    """Called with sizes and a cap in bytes, the function returned torch's own buckets, and left the sizes alone."""
    report, expected = run.reports[0], assignment(*run.case.args)
    got = report.buckets
    if not isinstance(got, (list, tuple)) or not all(isinstance(bucket, (list, tuple)) for bucket in got):
        return f"returned {got!r}, not a list of lists"
    missing = sorted(set(range(len(run.case.args[0]))) - {i for bucket in got for i in bucket})
    if missing:
        return f"parameter {missing[0]} is in no bucket: returned {str(got)[:60]}"
    if len(got) != len(expected):
        return f"the number of buckets is {len(got)}, expected {len(expected)}: returned {str(got)[:60]}"
    wrong = next((i for i, (a, b) in enumerate(zip(got, expected, strict=True)) if list(a) != b), None)
    if wrong is not None:
        return f"bucket {wrong} is {str(got[wrong])[:60]}, expected {str(expected[wrong])[:60]}"
    return "assign changed the list of sizes that it was given" if report.sizes != run.case.args[0] else None


def gradients_are_the_mean(run: Run) -> str | None:
    """After wait() every gradient is the mean over the ranks; a rank without one counts as zeros."""
    names, turn, without = run.option("names"), run.option("times", 1) - 1, run.option("without", ())
    mean = {name: torch.zeros(SHAPES[name], device="cpu") for name in names}
    for rank in range(run.world_size):
        for name in names:
            if name not in without[rank : rank + 1]:
                mean[name] += gradient(rank, name, turn) / run.world_size
    return close_by_name("the gradient of", [report.gradients for report in run.reports], mean)


@given(gradients_are_the_mean)
def gradients_are_views(run: Run) -> str | None:
    """From put() on every gradient lies in the memory of flat, a vector that has room for them and no more.

    It is the same each time.
    """
    for rank, report in enumerate(run.reports):
        if len(report.flat) != 1:
            return f"on rank {rank} flat has shape {tuple(report.flat)}, expected one dimension"
        copies = [name for name in run.option("names") if name not in report.views]
        if copies:
            return f"on rank {rank} the gradient of {copies[0]} is not in the memory of flat"
        if report.late:
            return f"on rank {rank} the gradient of {report.late[0]} is not in the memory of flat when put() returns"
        total = sum(tensor.numel() for tensor in report.gradients.values())
        if report.flat != [total]:
            return f"on rank {rank} flat has {report.flat[0]} elements, the gradients {total}"
        if not report.same_flat:
            return f"on rank {rank} flat is another tensor the next time: make it once, and use it in every step"
    return None


@given(gradients_are_the_mean)
def one_message(run: Run) -> str | None:
    """Each time one all-reduce of the whole bucket, and nothing else."""
    size = 4 * sum(torch.Size(SHAPES[name]).numel() for name in run.option("names"))
    return operations_are(lambda run: run.option("times", 1) * [("all_reduce", size)])(run)


@given(gradients_are_the_mean)
def launch_does_not_wait(run: Run) -> str | None:
    """When launch() returns the all-reduce has started, and nobody has waited for it."""
    for rank, (report, operations) in enumerate(zip(run.reports, run.operations, strict=True)):
        last = [op for op in operations if op.start <= report.launched][-1:]
        if run.world_size > 1 and not last:
            return f"rank {rank} had started nothing when launch() returned"
        if last and last[0].wait is not None and last[0].wait <= report.launched:
            return f"rank {rank} waited for its all-reduce inside launch(), or it was no asynchronous one"
    return None


@given(gradients_are_the_mean)
def leaves_others_alone(run: Run) -> str | None:
    """Of two buckets that are on their way at the same time each has its own mean."""
    for rank, report in enumerate(run.reports):
        if not report.ones:
            return f"on rank {rank} two buckets were on their way at the same time, and the other one's mean is wrong"
    return None


def missing_is_counted(run: Run) -> str | None:
    """Each put makes that parameter no longer missing, and after wait() all are again."""
    n, times = len(run.option("names")), run.option("times", 1)
    expected = [n] + times * list(range(n))[::-1] + [n]
    for rank, report in enumerate(run.reports):
        if report.missing != expected:
            return f"on rank {rank} there were {report.missing} missing after each put, expected {expected}"
        if report.others_missing:
            name = report.others_missing[0]
            return f"on rank {rank} after put({name}) missing holds other parameters than those that were not put"
    return None
