"""Under another name, beside a file whose name is a command to a terminal."""

# verdict: invalid submission
# says: final.ipynb
# %% hand in
path.rename(path.with_name("final.ipynb"))
path.with_name("\x1b]0;evil\x07").touch()
