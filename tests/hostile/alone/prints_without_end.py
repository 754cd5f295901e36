"""Prints for ever."""

# verdict: limit
# says: LIMIT in cell [4]
# %% triple
while True:
    print("x" * 1000)
