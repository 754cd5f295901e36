"""Processes without end, memory without end and printing without end, on ranks."""


# verdict: limit
# says: MEMORY LIMIT
# %% first
def first(tensor):
    import os, time

    while True:
        if os.fork() == 0:
            time.sleep(3000)
            os._exit(0)


# %% second
def second(tensor):
    taken = []
    while True:
        taken.append(b"x" * 2**26)


# %% third
def third(tensor):
    while True:
        print("x" * 1000)
