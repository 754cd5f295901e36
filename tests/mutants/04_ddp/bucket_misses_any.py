"""Which parameter is missing is left to chance; only how many is right."""
# caught by: test_Bucket
# mistake: wrong_ones_dropped
# says: missing holds other parameters
# %% Bucket: changed
# -         self.missing.discard(parameter)
# +         self.missing.pop()
