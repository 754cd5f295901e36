"""The buffer is a matrix of one column."""
# caught by: test_Bucket
# mistake: wrong_kind
# says: expected one dimension
# %% Bucket: changed
# -         self.flat = torch.zeros(sum(sizes))
# -         parts = self.flat.split(sizes)
# +         self.flat = torch.zeros(sum(sizes), 1)
# +         parts = self.flat.split(sizes)
