"""Files of traces as profiles of ranks, all on one scale of time though not yet on one clock."""

from collections.abc import Iterable
from pathlib import Path

from ringzero.profiles import files, kineto, own
from ringzero.profiles.files import Events
from ringzero.profiles.profile import Profile, of_operations


def read(paths: Iterable[str | Path]) -> list[Profile]:
    """The profile of each rank, in order, from files of torch's profiler or of this package, or folders of them.

    Each rank's times are those of its own clock, counted from the earliest event of all.

    Raises ValueError for a file that is no trace, for two files of one rank, and for files of both kinds.
    """
    traces = [files.load(path) for path in files.find(paths)]
    if not traces:
        raise ValueError("no trace is given; give the files of the ranks, or the folder that holds them")
    ours = [trace for trace in traces if own.is_own(trace)]
    theirs = [trace for trace in traces if kineto.is_kineto(trace)]
    neither = [trace.file for trace in traces if trace not in ours and trace not in theirs]
    if neither:
        raise ValueError(
            f"{neither[0]} is a trace, but neither torch's profiler nor ringzero wrote it: none of its events has a "
            "category of theirs, such as cpu_op, kernel or communication"
        )
    if ours and theirs:
        raise ValueError(
            f"{ours[0].file} is a trace of ringzero's, {theirs[0].file} of torch's profiler; give one kind"
        )
    return _of_ours(ours) if ours else _of_torch(theirs)


def _of_ours(traces: list[Events]) -> list[Profile]:
    if len(traces) > 1:
        raise ValueError(f"{traces[0].file} has all ranks of its call; give it alone, without {traces[1].file}")
    (trace,) = traces
    operations = own.operations(trace)
    begin = min(op.start for op in operations)
    notes = (f"{trace.file} is cut short: its first {len(operations)} events count",) if trace.cut_short else ()
    return [p.on_clock(begin)._replace(notes=notes) for p in of_operations(operations, trace.file)]


def _of_torch(traces: list[Events]) -> list[Profile]:
    origin = min(kineto.begin(trace) for trace in traces)
    files_of: dict[int, str] = {}
    profiles = []
    for trace in traces:
        said = kineto.rank_of(trace)
        rank = said if said is not None else next(r for r in range(len(traces)) if r not in files_of)
        if rank in files_of:
            raise ValueError(f"{files_of[rank]} and {trace.file} are both of rank {rank}; give one file for each rank")
        files_of[rank] = trace.file
        profile = kineto.profile(trace, rank, origin)
        if not profile.operations:
            raise ValueError(f"{trace.file} has no operator and no kernel; profile what the ranks compute and send")
        if said is None and len(traces) > 1:
            note = f"{trace.file} does not say its rank; by its place among the files it counts as rank {rank}"
            profile = profile._replace(notes=(*profile.notes, note))
        profiles.append(profile)
    return sorted(profiles, key=lambda profile: profile.rank)
