"""Of a format that never existed: its reader fails and says nothing."""

# verdict: invalid submission
# says: is not a valid notebook
# %% hand in
path.write_text(path.read_text().replace('"nbformat_minor": 5', '"nbformat_minor": 4.5'))
