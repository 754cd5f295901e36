"""What a chunk holds, as a sum of contributions: ``{(rank, chunk): times}``.

Rank r's chunk c begins as ``{(r, c): 1}``. The finished chunk c of an all-reduce holds ``(r, c)`` once for every r.
"""


def at_start(rank: int, chunk: int) -> dict:
    return {(rank, chunk): 1}


def finished(n: int, chunk: int) -> dict:
    return {(rank, chunk): 1 for rank in range(n)}


def added(one: dict, other: dict) -> dict:
    total = dict(one)
    for key in other:
        total[key] = total.get(key, 0) + other[key]
    return total


def overlap(one: dict, other: dict) -> list:
    """The ranks of which both hold a contribution."""
    return sorted({rank for rank, chunk in one if (rank, chunk) in other})


def lacking(one: dict, other: dict) -> list:
    """The ranks of which ``one`` lacks a contribution that ``other`` holds."""
    return sorted({rank for rank, chunk in other if (rank, chunk) not in one})


def what_is_wrong(held: dict, n: int, chunk: int) -> str:
    """In words, what distinguishes ``held`` from the finished chunk. Empty where nothing does.

    >>> what_is_wrong({(0, 1): 1, (1, 1): 2, (2, 0): 1}, n=4, chunk=1)
    'lacks the contributions of ranks 2 and 3, counts rank 1 twice and holds chunk 0 of rank 2'
    """
    missing = lacking(held, finished(n, chunk))
    said = [f"lacks the contribution{'s' * (len(missing) > 1)} of {ranks(missing)}"] if missing else []
    counted = [f"rank {rank} {_times(held[rank, chunk])}" for rank in range(n) if held.get((rank, chunk), 0) > 1]
    if counted:
        said.append(f"counts {listed(counted)}")
    for other in range(n):
        from_there = [rank for rank in range(n) if (rank, other) in held]
        if other != chunk and from_there:
            said.append(f"holds chunk {other} of {ranks(from_there)}")
    return listed(said)


def _times(number):
    words = ("never", "once", "twice", "three times", "four times", "five times")
    return words[number] if number < len(words) else f"{number:,} times"


def ranks(numbers: list) -> str:
    """ "rank 1", or "ranks 0, 2 and 3"."""
    return f"rank{'s' * (len(numbers) > 1)} {listed([str(number) for number in numbers])}"


def listed(words: list) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def number(value: float) -> str:
    """With up to three decimals: "1.5", "1.333", "2"."""
    return f"{value:.3f}".rstrip("0").rstrip(".")
