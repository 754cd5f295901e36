"""Kills torchrun and every process that it sees; the calls after that have ranks again."""


# verdict: student fault
# %% first
def first(tensor):
    import os, signal

    os.kill(-1, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
