"""A buffer of another type than the gradients."""
# caught by: test_Bucket
# mistake: type_fixed
# says: the new .grad is double, its parameter is float: give both one dtype
# %% Bucket: changed
# -         self.flat = torch.zeros(sum(sizes))
# +         self.flat = torch.zeros(sum(sizes), dtype=torch.float64)
