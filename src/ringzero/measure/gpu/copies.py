"""Copies between the host's memory and a GPU's: by size, from pinned and pageable memory, waiting or not."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from ringzero.measure.gpu.clocks import medians

SIZES = (2**12, 2**16, 2**20, 2**24, 2**28)  # bytes


def rows(device: str, sizes: Sequence[int] = SIZES, tries: int = 9) -> Iterator[dict[str, Any]]:
    """A row for each size, kind of memory, way, and asynchronous or not: ``seconds`` until the bytes were there, and
    ``returned_seconds`` until the call came back. At last both ways at once, each with so many bytes."""
    for nbytes in sizes:
        on_device = torch.zeros(nbytes, dtype=torch.uint8, device=device)
        for pinned in (False, True) if device == "cuda" else (False,):
            on_host = host_memory(nbytes, pinned)
            for way, of, into in (("to the device", on_host, on_device), ("to the host", on_device, on_host)):
                for asynchronous in (False, True):
                    returned, done = timed(of, into, asynchronous, device, tries)
                    memory = "pinned" if pinned else "pageable"
                    yield _row(nbytes, memory, way, asynchronous, returned, done, nbytes / done)
    if device == "cuda":
        seconds = both_ways(sizes[-1], tries)
        yield _row(sizes[-1], "pinned", "both ways at once", True, None, seconds, 2 * sizes[-1] / seconds)


def _row(*values: object) -> dict[str, Any]:
    names = ("bytes", "memory", "way", "asynchronous", "returned_seconds", "seconds", "bytes_per_second")
    return dict(zip(names, values, strict=True))


def host_memory(nbytes: int, pinned: bool) -> torch.Tensor:
    """Memory of the host that was written to, so that it is really there."""
    return torch.empty(nbytes, dtype=torch.uint8, device="cpu", pin_memory=pinned).fill_(1)


def timed(of: torch.Tensor, into: torch.Tensor, asynchronous: bool, device: str, tries: int = 9) -> tuple[float, float]:
    """Median seconds until ``into.copy_(of)`` came back, and until the bytes were there."""
    return medians(lambda: into.copy_(of, non_blocking=asynchronous), device, tries)


def both_ways(nbytes: int, tries: int) -> float:
    """Median seconds of a copy to the GPU and one to the host, on two streams."""
    up, down = torch.cuda.Stream(), torch.cuda.Stream()
    sent, came = (torch.zeros(nbytes, dtype=torch.uint8, device="cuda") for _ in range(2))
    source, target = host_memory(nbytes, True), host_memory(nbytes, True)

    def both() -> None:
        with torch.cuda.stream(up):
            came.copy_(source, non_blocking=True)
        with torch.cuda.stream(down):
            target.copy_(sent, non_blocking=True)

    return medians(both, "cuda", tries)[1]
