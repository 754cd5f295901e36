"""Lists in lists, deeper than a reader goes."""

# verdict: invalid submission
# says: not valid JSON
# %% hand in
path.write_bytes(b"[" * 200_000)
