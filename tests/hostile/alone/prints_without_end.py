"""Prints for ever."""

# verdict: limit
# says: OUTPUT LIMIT in cell [4]
# %% triple
while True:
    print("x" * 1000)
