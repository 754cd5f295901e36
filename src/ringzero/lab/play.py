"""On the ranks: play one case after another, and leave a file for each of what came of it."""

import contextlib
import os
import time
from pathlib import Path

import torch

from ringzero.launch import plain, sources

PATIENCE_SECONDS = 1.0  # how long a rank that has played a case waits for the others before it leaves the call
GUARD = 8  # elements on either side of a tensor that the function must not touch


def play(code, cases, directory):
    """Play every case on this rank and leave a report of each as the file ``<case>-<rank>``."""
    import cloudpickle

    rank = torch.distributed.get_rank()
    batches, kept, heads = _note_batches(), [], _note_heads() if cases[0].watched else []
    function = cloudpickle.loads(code)
    for index, case in enumerate(cases):
        path = Path(directory)
        try:
            report = _play(function, case, rank, batches, kept, heads)
            if report["device"] == "cpu" and any(op["end"] is None for op in report["operations"]):
                _decide(path, index, "stop")  # what was not waited for could disturb the next case
            _leave(report, path, index, rank)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            _leave(_error_report(error), path, index, rank)
            raise
        if not _all_go_on(path, index, case.ranks):
            return


def _all_go_on(directory, index, ranks):
    """Whether all ranks play the next case together, or all leave: where one takes long, those that wait must return.

    Only then can ``launch`` tell that the others wait for ranks that will not come. If they were just slow, the cases
    left are played in another launch. No message is sent for this: the traffic is the student's.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not all((directory / f"{index}-{rank}").exists() for rank in range(ranks)):
        if time.monotonic() > deadline:
            return _decide(directory, index, "stop") == "go on"
        time.sleep(0.0005)
    return _decide(directory, index, "go on") == "go on"


def _decide(directory, index, what):
    """What comes after case ``index``: ``what``, unless another rank was first to decide."""
    with contextlib.suppress(FileExistsError):
        os.symlink(what, directory / f"{index}-next")  # comes into being with its content, for one rank only
    return os.readlink(directory / f"{index}-next")


def _play(function, case, rank, batches, kept, heads):
    from ringzero.launch import trace

    args, tensor, buffer = list(case.args), None, None
    if case.numel is not None:
        buffer = torch.zeros(case.numel + 2 * GUARD, dtype=case.dtype)
        tensor = buffer[GUARD : GUARD + case.numel]
        tensor.copy_(case.input(rank))
        args.insert(0, tensor)
        kept.append(buffer)  # a message nobody waited for may still land in it
    before = len(trace.recorded())
    heads.clear()
    value = function(*args, **case.options)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    operations = trace.recorded()[before:]
    for op in operations:
        op["batch"] = next((i for i, (first, last) in enumerate(batches) if first <= op["sequence"] < last), None)
    for op, head in zip([op for op in operations if op["kind"] == "send"], heads, strict=False):
        op["head"] = head
    return {
        "returned": value,
        "after": tensor,
        "guards_kept": buffer is None or not bool(buffer[:GUARD].any() or buffer[-GUARD:].any()),
        "operations": operations,
        "time": time.time(),
        "device": (torch.get_default_device() if tensor is None else tensor.device).type,
    }


def _leave(report, directory, index, rank):
    unfinished = directory / f"{index}-{rank}.unfinished"
    plain.dump(report, unfinished)
    unfinished.rename(directory / f"{index}-{rank}")


def _note_batches():
    """From now on, note which operations are started together: pairs (first, last + 1) of sequence numbers."""
    import torch.distributed.distributed_c10d as c10d

    from ringzero.launch import trace

    batches, original = [], c10d.batch_isend_irecv

    def batch_isend_irecv(p2p_op_list):
        before = len(trace.recorded())
        try:
            return original(p2p_op_list)
        finally:
            batches.append((before, len(trace.recorded())))

    c10d.batch_isend_irecv = torch.distributed.batch_isend_irecv = batch_isend_irecv
    return batches


def _note_heads():
    """From now on, note the first element of every message sent (None if it is empty)."""
    from ringzero.launch import trace

    heads, original = [], trace.TracedProcessGroup.send

    def send(self, tensors, *args, **options):
        heads.append(tensors[0].flatten()[0].item() if tensors[0].numel() else None)
        return original(self, tensors, *args, **options)

    trace.TracedProcessGroup.send = send
    return heads


def _error_report(error):
    import traceback

    frames = [
        [sources.label(frame.filename), frame.lineno, frame.name, frame.line or ""]
        for frame in traceback.extract_tb(error.__traceback__)
        if not sources.is_plumbing(frame.filename) and not is_harness(frame.filename)
    ]
    own = [frame for frame in frames if "site-packages" not in frame[0] and "/lib/python" not in frame[0]] or frames
    return {"error": type(error).__name__, "message": str(error), "frames": own, "time": time.time()}


def is_harness(filename):
    """Whether frames of this file are ours: they are no part of what the student did."""
    return "/ringzero/lab/" in filename.replace("\\", "/")
