"""What the executor of ringzero's own collectives and the recording process group must agree on.

One collective is many messages. A group that wants to record them as one call has a method ``begin_call(called)``,
which returns what sends and receives the messages of that call; ``begin_call`` here finds it. Beside the data, ranks
exchange *headers*, 16 bytes in which they compare what they call. A header's tag is ``HEADER_TAG``, and the tag of
data is computed from what is called, so buffers that do not match never meet.
"""

from collections.abc import Callable, Hashable
from zlib import crc32

from ringzero.record.operation import HEADER, Operation

HEADER_TAG = 2**30  # data has smaller tags
OTHER_TAG = HEADER_TAG + 1  # of messages of ours that are part of no collective
NOBODYS_TAG = HEADER_TAG + 2  # of no message: whoever asks for one learns whether the other end is there


def data_tag(signature: Hashable) -> int:
    """The tag of a call's data: below ``HEADER_TAG``, and different where ``signature`` differs (as crc32 does)."""
    return crc32(repr(signature).encode()) % HEADER_TAG


def goes_in_groups(group: object, on_gpu: bool) -> bool:
    """Whether messages of ``group`` must go out in groups, as on NCCL: one that stands alone waits for its other end.

    A process group written in Python says so itself, by ``groups_messages``.
    """
    return getattr(group, "groups_messages", on_gpu)


def begin_call(group: object) -> Callable:
    """``begin_call(called)`` for ``group``: what has ``send`` and ``recv`` for one call, described in words.

    A process group that does not record serves every call itself.
    """
    return getattr(group, "begin_call", lambda called: group)


def data_of(call: Operation) -> tuple[int, str | None] | None:
    """Of a call put together by ``calls``: ``(tag, dtype)`` of its data, the same on two ranks only if what they
    called matches. None if it sent and received no data.
    """
    return next(((part.tag, part.dtype) for part in call.parts if part.kind != HEADER), None)
