"""A buffer of another type than the gradients."""
# caught by: test_Bucket
# says: x
# %% Bucket: changed
# -         self.flat = torch.zeros(sum(sizes))
# +         self.flat = torch.zeros(sum(sizes), dtype=torch.float64)
