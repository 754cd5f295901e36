"""Takes memory without end."""

# verdict: limit
# says: MEMORY LIMIT
# %% triple
taken = []
while True:
    taken.append(bytearray(b"x" * 2**26))
