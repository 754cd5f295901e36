"""Cut off, as by a download that broke off."""

# verdict: invalid submission
# says: not valid JSON
# %% hand in
path.write_bytes(path.read_bytes()[:700])
