"""What the executor of ringzero's own collectives and the recording process group must agree on.

One collective is many messages. A group that records them as one call has a method ``begin_call(called, tag)``, which
returns what sends and receives the messages of that call. Before the data, ranks exchange *headers*, in which they
compare what they call (``collectives.agree``). They travel with ``HEADER_TAG``. The tag of data is computed from what
is called, so buffers that do not match never meet; a header is recorded with that tag, too.
"""

from collections.abc import Hashable
from typing import Any
from zlib import crc32

from ringzero.record.operation import Operation

HEADER_TAG = 2**30  # data has smaller tags
OTHER_TAG = HEADER_TAG + 1  # of messages of ours that are part of no collective
NOBODYS_TAG = HEADER_TAG + 2  # no message has it: to receive one fails when the other rank is gone, and only then


def data_tag(signature: Hashable) -> int:
    """The tag of a call's data: below ``HEADER_TAG``, and different where ``signature`` differs (as crc32 does)."""
    return crc32(repr(signature).encode()) % HEADER_TAG


def goes_in_groups(group: object, on_gpu: bool) -> bool:
    """Whether messages of ``group`` must go out in groups.

    On NCCL an ungrouped send blocks the queue until its receive runs. A process group written in Python says so itself,
    by ``groups_messages``.
    """
    return getattr(group, "groups_messages", on_gpu)


def begin_call(group: Any, called: str, tag: int) -> Any:
    """What has ``send`` and ``recv`` for the messages of one call, described in words; ``tag`` is that of its data.

    A process group that does not record serves every call itself.
    """
    return group.begin_call(called, tag) if hasattr(group, "begin_call") else group


def tag_of(call: Operation) -> int:
    """Of a call put together by ``calls``: the tag of its data, the same on two ranks only if their calls match."""
    return call.parts[0].tag
