"""torch's median: of two times in the middle the smaller one."""
# caught by: test_straggler
# mistake: one_of_a_kind
# says: that is less the smaller one of the two times in the middle
# %% straggler: changed
# -         charges[last] += times[last] - statistics.median(others)
# +         charges[last] += times[last] - torch.tensor(others, dtype=torch.float64).median().item()
