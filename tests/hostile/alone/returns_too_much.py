"""Returns millions of bytes, and numbers that take for ever to read."""


# verdict: student fault
# says: LabError
# %% double
# says: double returned more than 1000000 bytes
def double(x):
    return "x" * 20_000_000


# %% triple
# says: triple left an answer that cannot be read
def triple(x):
    import os

    for number in range(3, 20):  # one of them takes the answer
        try:
            os.write(number, b'{"returned": ' + b"9" * 900_000 + b"}")
        except OSError:
            pass
    os._exit(0)
