"""Not a text file."""

# verdict: invalid submission
# says: not a text file
# %% hand in
path.write_bytes(bytes(range(256)) * 9)
