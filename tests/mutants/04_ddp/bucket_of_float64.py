"""A buffer of another type than the gradients."""
# caught by: test_Bucket
# says: attempting to assign a gradient with dtype 'double'
# %% Bucket: changed
# -         self.flat = torch.zeros(sum(sizes))
# +         self.flat = torch.zeros(sum(sizes), dtype=torch.float64)
