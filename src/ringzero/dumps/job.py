"""The dumps of all ranks side by side, as the states that ``ringzero.explain`` compares.

Three things are put right on the way. The recorder keeps a rank's last operations only, and of another rank perhaps
later ones, so a group's collectives are compared from the first that all ranks have. gloo's dumps name a group but not
its members: these are the ranks that used it. And a rank without a dump is taken out of its groups, because nobody
knows what it did.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ringzero.dumps import files
from ringzero.dumps.entries import Issued, issued, merge_pieces
from ringzero.explain.state import RankState

MOST = 100_000  # operations that are compared; of many ranks fewer of each, its last ones
FEWEST = 100  # of a rank
WORLD = "default_pg"  # how torch describes the group of all ranks
MEETINGS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier")  # end when all ranks have come


class Group(NamedTuple):
    """A process group. ``members`` left dumps and are compared; of ``perhaps`` nobody knows whether they belong to it.

    ``without_dump`` are members that left none, or may be. A peer's number is a place in ``all_members``.
    """

    name: str
    description: str
    all_members: tuple[int, ...]
    members: tuple[int, ...]
    without_dump: tuple[int, ...] = ()
    perhaps: tuple[int, ...] = ()


@dataclass(frozen=True)
class Job:
    """What the dumps say together.

    ``states`` has one for each rank, ``calls`` what each rank issued, ``groups`` the groups that it knows, by name.
    ``missing`` says of each rank without a dump why there is none. ``cut``: there were more operations than these.
    """

    states: list[RankState]
    calls: dict[int, list[Issued]]
    groups: dict[int, dict[str, Group]]
    missing: dict[int, str]
    files: dict[int, Path]
    backends: list[str]
    cut: bool


class _Dump(NamedTuple):
    """One rank's dump, read. ``ranks`` are those of its groups, by name, where it has them."""

    calls: list[Issued]
    descriptions: dict[str, str]
    ranks: dict[str, tuple[int, ...]]
    backend: str
    cut: bool


def read(paths: Iterable[str | Path], world_size: int | None = None) -> Job:
    """The job that left these dumps. A file that cannot be read costs its rank and no other.

    Raises ValueError as ``files.find`` does, if no file can be read, and for a ``world_size`` that is too small.
    """
    found = dict(sorted(files.find(paths).items()))
    missing, dumps = {}, {}
    most = max(MOST // len(found), FEWEST)
    for rank, file in found.items():
        try:
            dumps[rank] = _dump(rank, files.load(file), most)
        except files.UnreadableError as error:
            missing[rank] = str(error)
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
            missing[rank] = f"{file} is no dump as torch writes them: {type(error).__name__}: {error}"
    if not dumps:
        raise ValueError(next(iter(missing.values())))
    world = _world(dumps, found, world_size)
    missing |= {rank: "there is no file of it" for rank in world if rank not in dumps and rank not in missing}
    groups, cut = _groups(dumps, world), any(dump.cut for dump in dumps.values())
    calls = {rank: _in_groups(dump.calls, groups[rank]) for rank, dump in dumps.items()}
    lacking = _align(calls) if cut else {}
    backends = sorted({dump.backend for dump in dumps.values() if dump.backend})
    nothing = RankState("gone" if backends == ["gloo"] else "running", [])  # gloo ends a rank that gets too much
    states = [_state(calls[r], lacking, backends) if r in calls else nothing for r in world]
    return Job(states, calls, groups, dict(sorted(missing.items())), found, backends, cut)


def _world(dumps: Mapping[int, "_Dump"], ranks: Iterable[int], world_size: int | None) -> range:
    """All ranks of the job, as far as files, groups and lists of tensors show them."""
    named = [rank for dump in dumps.values() for some in dump.ranks.values() for rank in some]
    sizes = [call.group_size or 0 for dump in dumps.values() for call in dump.calls]
    size = max(1 + max((*ranks, *named)), max(sizes, default=0))
    if world_size is not None and world_size < size:
        raise ValueError(f"the job had {world_size} ranks, but these dumps are of {size} or more")
    return range(world_size or size)


def _dump(rank: int, content: Mapping[str, Any], most: int) -> _Dump:
    entries = list(content.get("entries") or ())
    config = {str(name): each for name, each in (content.get("pg_config") or {}).items()}
    descriptions = {name: str(each.get("desc", "")) for name, each in config.items()}
    descriptions |= {str(name): str(text) for name, text in {tuple(entry["process_group"]) for entry in entries}}
    ranks = {name: _numbers(str(each.get("ranks", ""))) for name, each in config.items()}
    backend = str(entries[0].get("profiling_name", "")).partition(":")[0] if entries else ""
    calls = issued(rank, entries[-most:])
    largest = max(
        [*(max(some, default=0) for some in ranks.values()), *(call.group_size or 0 for call in calls)], default=0
    )
    if largest > files.LARGEST:
        raise ValueError(f"a group with rank {largest}")
    cut = len(entries) > most or bool(entries and int(entries[0].get("record_id") or 0))
    return _Dump(calls, descriptions, ranks, backend, cut)


@cache
def _numbers(text: str) -> tuple[int, ...]:
    """Those of "[0, 1, 2]"; ranks of one group share them."""
    return tuple(map(int, re.findall(r"\d+", text)))


def _groups(dumps: Mapping[int, _Dump], world: range) -> dict[int, dict[str, Group]]:
    """``{rank: {name: the group it knows by this name}}``."""
    users: dict[str, list[int]] = {}  # of groups whose members no dump names
    groups: dict[int, dict[str, Group]] = {rank: {} for rank in dumps}
    known: dict[tuple, Group] = {}
    for rank, dump in dumps.items():
        for name in {call.operation.group: None for call in dump.calls}:
            if ranks := dump.ranks.get(name):
                if (name, ranks) not in known:
                    known[name, ranks] = _group(name, dump.descriptions.get(name, ""), ranks, dumps)
                groups[rank][name] = known[name, ranks]
            else:
                users.setdefault(name, []).append(rank)
    for name, some in users.items():
        description = dumps[some[0]].descriptions.get(name, "")
        if description == WORLD:
            group = _group(name, description, world, dumps)
        else:
            group = _group_of_users(name, description, some, dumps, world)
        for rank in some:
            groups[rank][name] = group
    return groups


def _group(name, description, ranks, dumps, perhaps=()):
    without = tuple(rank for rank in (*ranks, *perhaps) if rank not in dumps)
    members, others = (tuple(rank for rank in some if rank in dumps) for some in (ranks, perhaps))
    return Group(name, description, tuple(ranks), members, without, () if without else others)


def _group_of_users(name, description, users, dumps, world):
    """The group that ``users`` used: all of it if one of its collectives ended that needs all, or if its size says so.

    Else any other rank may belong to it, too.
    """
    calls = [call for rank in users for call in dumps[rank].calls if call.operation.group == name]
    others = [rank for rank in world if rank not in users]
    size = max((call.group_size for call in calls if call.group_size), default=None)
    if size == len(world):
        return _group(name, description, world, dumps)
    if size == len(users):
        return _group(name, description, users, dumps)
    if any(call.operation.end is not None and call.operation.kind in MEETINGS for call in calls):
        others = [rank for rank in others if rank not in dumps]
    return _group(name, description, users, dumps, others)


def _in_groups(calls: list[Issued], groups: Mapping[str, Group]) -> list[Issued]:
    """A rank's calls with their groups' members; without messages from or to ranks that left no dump."""
    found: list[Issued] = []
    for call in merge_pieces(calls, {name: len(group.all_members) for name, group in groups.items()}):
        op, group = call.operation, groups[call.operation.group]
        peer, known = op.peer, True
        if peer is not None:
            other = group.all_members[peer] if peer < len(group.all_members) else None
            known = other in group.members
            peer = group.members.index(other) if known else None
        if known:
            found.append(call._replace(operation=op._replace(members=group.members, peer=peer)))
    return found


def _align(calls: dict[int, list[Issued]]) -> dict[tuple, int]:
    """Begin each group where all its ranks have records. Returns how many of its collectives came before that.

    Of messages only those stay that have not ended: both ends of the others were there.
    """
    first: dict[tuple, dict[int, int]] = {}
    for rank, some in calls.items():
        for call in some:
            if not call.operation.is_message:
                first.setdefault((call.operation.group, *call.operation.members), {}).setdefault(rank, call.place)
    begin = {key: max(places.values()) for key, places in first.items()}

    def stays(call):
        op = call.operation
        return op.end is None if op.is_message else call.place >= begin[op.group, *op.members]

    for rank in calls:
        calls[rank] = [call for call in calls[rank] if stays(call)]
    return {key: max(place - 1, 0) for key, place in begin.items()}


def _state(calls, lacking, backends):
    where = "a place that its dump does not hold"
    if calls:
        where += f", after {calls[-1].operation.kind}, {calls[-1].operation.line}"
    operations = [call.operation for call in calls]
    return RankState("running", operations, where, queued=backends != ["gloo"], lacking=lacking)
