"""Larger than any notebook."""

# verdict: invalid submission
# says: over the limit
# %% hand in
with open(path, "r+b") as file:
    file.truncate(60_000_000)
