"""Starts processes until there can be no more."""


# verdict: student fault
# says: BlockingIOError
# %% triple
# points: 3
def triple(x):
    return 3 * x


import os, time

while True:
    if os.fork() == 0:
        time.sleep(3000)
        os._exit(0)
