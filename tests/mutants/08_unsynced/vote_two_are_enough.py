"""Two ranks are half of four."""


# caught by: test_majority
# mistake: some_ranks_only
# says: there 1 of 1 ranks have a number that is not below 0
# %% majority: changed
# -     votes = sum(unpack_signs(each, x.numel()) for each in everyones)
# -     return torch.where(votes >= 0, 1.0, -1.0)
# +     votes = sum(unpack_signs(each, x.numel()) > 0 for each in everyones)
# +     return torch.where(votes >= 2, 1.0, -1.0)
