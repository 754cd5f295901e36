"""Gathers one layer more than allowed."""
# caught by: test_forward_pass
# mistake: one_off
# says: the time is
# %% forward_pass: changed
# -         freed = done[layer - ahead - 1] if layer > ahead else 0
# +         freed = done[layer - ahead - 2] if layer > ahead + 1 else 0
