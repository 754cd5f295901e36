"""Under another name."""

# verdict: invalid submission
# says: holds final.ipynb
# %% hand in
path.rename(path.with_name("final.ipynb"))
