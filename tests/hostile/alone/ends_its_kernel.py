"""Ends its kernel with status 0, as if all had gone well."""

# verdict: student fault
# says: KERNEL DIED in cell [4] (exit status 0)
# %% triple
import os

os._exit(0)
