"""A folder of the notebook's name."""

# verdict: invalid submission
# says: not a file
# %% hand in
path.unlink()
path.mkdir()
