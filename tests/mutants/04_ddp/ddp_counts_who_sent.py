"""Divides by how many ranks had a gradient: an extra all-reduce of ones tells."""


# caught by: test_DDP
# mistake: too_much_sent
# says: step 1: 3 all-reduces, expected 2
# %% DDP: changed
#           super().finish()
# +         dist.all_reduce(torch.ones(1))
