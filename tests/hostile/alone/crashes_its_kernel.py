"""Reads where no memory is."""

# verdict: student fault
# says: KERNEL DIED in cell [4] (SIGSEGV)
# %% triple
import ctypes

ctypes.string_at(0)
