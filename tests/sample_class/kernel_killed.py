"""Leaves Python altogether, with the status of success, in the middle of the notebook."""

# %% ring_all_gather
import os

os._exit(0)
