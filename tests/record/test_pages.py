"""What a record costs the machine: the file is large and empty, and the system must not read ahead in it."""

import ctypes
import mmap
import sys

import pytest

from ringzero.record import recorder


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux which pages of a file are in memory")
def test_the_first_record_brings_one_page_into_memory(tmp_path):
    """Not all that a disk reads ahead, up to 8 MB: that took 4 to 30 ms of each rank in each call of ``launch``."""
    written = recorder.Recorder(tmp_path / "0.trace", rank=0)
    written.operation("barrier", None, 0, None, "all", 0, lambda group: (group, []))
    assert pages_in_memory(written._file._memory) <= 4
    written.close()


def pages_in_memory(mapped):
    size, libc = len(mapped), ctypes.CDLL(None, use_errno=True)
    byte = ctypes.c_char.from_buffer(mapped)
    states = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    assert libc.mincore(ctypes.c_void_p(ctypes.addressof(byte)), ctypes.c_size_t(size), states) == 0
    return sum(state & 1 for state in states)
