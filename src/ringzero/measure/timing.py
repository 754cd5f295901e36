"""What a timing of a collective is of: one implementation, in place or out of place. Without torch."""

from dataclasses import dataclass

IN_PLACE, OUT_OF_PLACE = "in place", "out of place"
CALMED = "calmed"  # gloo's own collective, its event thread made a batch thread as ringzero makes it


@dataclass(frozen=True)
class Timing:
    """``seconds``: the median over iterations, each as long as its slowest rank. ``wrong``: elements, on all ranks."""

    seconds: float
    wrong: int
