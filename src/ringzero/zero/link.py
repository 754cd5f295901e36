"""The link between two tiers of memory: copies from a device's memory to the host's, and back."""

import threading
import time

import torch


class Link:
    """Copies tensors, and counts their bytes in ``bytes_to_host`` and ``bytes_to_device``.

    A GPU copies at the rate of its PCIe slot. Where both tiers are the host's memory there is no slot: with
    ``bytes_per_second`` a copy takes as long as at that rate. Copies of one direction follow each other, and do not
    slow down those of the other, as on PCIe.
    """

    def __init__(self, bytes_per_second: float | None = None):
        if bytes_per_second is not None and not bytes_per_second > 0:
            raise ValueError(f"bytes_per_second is {bytes_per_second!r}; give a positive number, or None for no limit")
        self.bytes_per_second = bytes_per_second
        self.bytes_to_host = self.bytes_to_device = 0
        self._to_host, self._to_device = _Direction(), _Direction()

    def to_host(self, into: torch.Tensor, source: torch.Tensor) -> None:
        """Copy ``source``, on the device, ``into`` host memory. On CUDA it is there when the stream has come so far."""
        self.bytes_to_host += source.nbytes
        self._copy(self._to_host, into, source)

    def to_device(self, into: torch.Tensor, source: torch.Tensor) -> None:
        """Copy ``source``, in host memory, ``into`` the device's. Of two types it is the device's that travels."""
        if source.dtype != into.dtype:  # in pinned memory, from which a GPU copies beside the CPU's work
            source = torch.empty(source.shape, dtype=into.dtype, device="cpu", pin_memory=into.is_cuda).copy_(source)
        self.bytes_to_device += source.nbytes
        self._copy(self._to_device, into, source)

    def _copy(self, direction: "_Direction", into: torch.Tensor, source: torch.Tensor) -> None:
        if self.bytes_per_second is None:
            into.copy_(source, non_blocking=True)
            return
        end = direction.reserve(source.nbytes / self.bytes_per_second)
        into.copy_(source)
        time.sleep(max(0.0, end - time.perf_counter()))


LATE = 2e-3  # seconds: a thread that slept wakes up late, and a link would have begun the next copy meanwhile


class _Direction:
    """When the copies that were begun in one direction will have ended."""

    def __init__(self) -> None:
        self._lock, self._free_at = threading.Lock(), 0.0

    def reserve(self, seconds: float) -> float:
        """The end of a copy of so many ``seconds`` that begins now, or after those before it."""
        with self._lock:
            now = time.perf_counter()
            self._free_at = (self._free_at if now < self._free_at + LATE else now) + seconds
            return self._free_at
