"""Every moment without computing, also those without communication."""
# caught by: test_exposed
# mistake: one_of_a_kind
# says: the exposed time is 6, expected 3
# %% exposed: changed
# -         if streams == {"communication"}:
# +         if "compute" not in streams:
