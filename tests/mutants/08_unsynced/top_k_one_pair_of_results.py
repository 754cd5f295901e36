"""mean and mine have memory that the next call overwrites."""


# caught by: test_top_k_mean
# mistake: copy_or_view
# says: is overwritten by the next call
# %% top_k_mean: changed
# + results = {}
# +
# +
#   def top_k_mean(vector, k):
# @@
# -     mean, mine = torch.zeros_like(vector), torch.zeros_like(vector)
# +     mean, mine = results.setdefault(len(vector), (torch.zeros_like(vector), torch.zeros_like(vector)))
# +     mean.zero_(), mine.zero_()
