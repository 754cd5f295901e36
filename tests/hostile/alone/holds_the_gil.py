"""A kernel that ignores interrupts, and computes in C for ever, so that no Python runs."""
# verdict: limit
# says: TIME LIMIT in cell [4]
# %% triple
import signal

signal.signal(signal.SIGINT, signal.SIG_IGN)
sum(range(10**13))
