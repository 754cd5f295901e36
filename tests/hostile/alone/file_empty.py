"""No bytes."""

# verdict: invalid submission
# says: is empty
# %% hand in
path.write_bytes(b"")
