"""Proof by bookkeeping: which ranks' contributions are in which chunk, after every round.

The state is a set of ranks for each (rank, chunk), kept as bits. A reduction may only join disjoint sets,
so a contribution is never counted twice; at the end every chunk must hold exactly the set the collective promises.
Chunks never mix, so they are checked a block at a time and memory stays bounded.
"""

import numpy as np

from ringzero.collectives.schedule import Schedule

BLOCK_BYTES = 128 * 2**20  # the state held at once
_REDUCING = ("all_reduce", "reduce_scatter", "reduce")


class ScheduleError(AssertionError):
    """A schedule does not compute its collective; the message names the round, ranks and chunk."""


def verify(schedule: Schedule):
    """Prove that ``schedule`` computes its collective, or raise ScheduleError.

    The ring of 1,024 ranks, two million transfers, takes about half a second. The state held at once stays
    under 128 MiB, or that of one chunk where a single one is larger.
    """
    n, chunks = schedule.world_size, schedule.chunks
    words = (n + 63) // 64
    for number, round in enumerate(schedule.rounds):
        _check_indices(number, round, n, chunks)
    block = max(1, BLOCK_BYTES // (n * words * 8))
    for first in range(0, chunks, block):
        _verify_block(schedule, first, min(first + block, chunks), words)


def _verify_block(schedule, first, last, words):
    state = _start(schedule, first, last, words)  # (world_size, last - first, words) of bits
    for number, round in enumerate(schedule.rounds):
        src, dst, chunk, reduce = round.src, round.dst, round.chunk, round.reduce
        if first > 0 or last < schedule.chunks:
            inside = (chunk >= first) & (chunk < last)
            src, dst, chunk, reduce = src[inside], dst[inside], chunk[inside], reduce[inside]
        if len(src) == 0:
            continue
        incoming = state[src, chunk - first]  # copies: what the sources held when the round began
        empty = ~incoming.any(axis=1)
        if empty.any():
            _fail(number, src, dst, chunk, empty, "sends something it does not hold yet")
        for wave in _waves(dst, chunk, schedule):
            at = (dst[wave], chunk[wave] - first)
            arriving = incoming[wave]
            if reduce[wave].any():
                held = state[at] * reduce[wave][:, None]
                twice = (arriving & held).any(axis=1)
                if twice.any():
                    _fail(number, src[wave], dst[wave], chunk[wave], twice, "adds a contribution already in the sum")
                arriving |= held
            state[at] = arriving
    _check_end(schedule, state, first, last, words)


def _waves(dst, chunk, schedule):
    """Split transfers so that within one part no two write the same chunk of the same rank."""
    if np.bincount(dst, minlength=schedule.world_size).max() == 1:
        return [slice(None)]
    key = dst.astype(np.int64) * schedule.chunks + chunk
    order = np.argsort(key, kind="stable")
    repeated = key[order][1:] == key[order][:-1]
    if not repeated.any():
        return [slice(None)]
    starts = np.flatnonzero(np.concatenate(([True], ~repeated)))
    lengths = np.diff(np.append(starts, len(key)))
    occurrence = np.empty(len(key), dtype=np.int64)
    occurrence[order] = np.arange(len(key)) - np.repeat(starts, lengths)
    return [np.flatnonzero(occurrence == wave) for wave in range(occurrence.max() + 1)]


def _bit(ranks, words):
    """Row i has only the bit of ``ranks[i]`` set. Shape ``(len(ranks), words)``."""
    rows = np.zeros((len(ranks), words), dtype=np.uint64)
    rows[np.arange(len(ranks)), ranks // 64] = np.uint64(1) << (ranks % 64).astype(np.uint64)
    return rows


def _start(schedule, first, last, words):
    n = schedule.world_size
    state = np.zeros((n, last - first, words), dtype=np.uint64)
    if schedule.collective in _REDUCING:
        state[:] = _bit(np.arange(n), words)[:, None, :]
        return state
    owner = schedule.owner[first:last]
    holder = np.full(last - first, schedule.root) if schedule.collective == "scatter" else owner
    state[holder, np.arange(last - first)] = _bit(owner, words)
    return state


def _check_end(schedule, state, first, last, words):
    n, owner = schedule.world_size, schedule.owner[first:last]
    if schedule.collective in _REDUCING:
        full = np.bitwise_or.reduce(_bit(np.arange(n), words), axis=0)
        wanted = np.broadcast_to(full, (last - first, words))
    else:
        wanted = _bit(owner, words)
    everywhere = schedule.collective in ("all_reduce", "all_gather", "broadcast")
    at_root = schedule.collective in ("reduce", "gather")
    for rank in [schedule.root] if at_root else range(n):
        goes_here = slice(None) if everywhere or at_root else owner == rank
        wrong = (state[rank, goes_here] != wanted[goes_here]).any(axis=-1)
        if wrong.any():
            chunk = np.arange(last - first)[goes_here][np.flatnonzero(wrong)[0]]
            bits = state[rank, chunk] ^ wanted[chunk]
            missing = [r for r in range(n) if int(bits[r // 64]) >> (r % 64) & 1]
            raise ScheduleError(
                f"{schedule}: after the last round rank {rank} does not hold chunk {chunk + first} as promised; what "
                f"is missing or too much comes from ranks {', '.join(map(str, missing[:8]))}{' …' * (len(missing) > 8)}"
            )


def _check_indices(number, round, n, chunks):
    for name, column, limit in (("src", round.src, n), ("dst", round.dst, n), ("chunk", round.chunk, chunks)):
        outside = (column < 0) | (column >= limit)
        if outside.any():
            _fail(number, round.src, round.dst, round.chunk, outside, f"has {name} outside 0 to {limit - 1}")
    to_itself = round.src == round.dst
    if to_itself.any():
        _fail(number, round.src, round.dst, round.chunk, to_itself, "sends to itself")


def _fail(number, src, dst, chunk, bad, what):
    i = int(np.flatnonzero(bad)[0])
    raise ScheduleError(f"round {number}: the transfer {src[i]}→{dst[i]} of chunk {chunk[i]} {what}")
