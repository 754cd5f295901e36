"""The time that overlaps: the opposite."""
# caught by: test_exposed
# mistake: reversed
# says: the exposed time is
# %% exposed: changed
# -         if streams == {"communication"}:
# +         if streams == {"communication", "compute"}:
