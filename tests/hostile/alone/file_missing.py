"""Nothing in the folder."""

# verdict: invalid submission
# says: The submission is empty
# %% hand in
path.unlink()
