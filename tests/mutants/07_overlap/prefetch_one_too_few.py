"""Frees a layer too late: k counts the layer that computes."""
# caught by: test_forward_pass
# mistake: one_off
# says: the time is
# %% forward_pass: changed
# -         freed = done[layer - ahead - 1] if layer > ahead else 0
# +         freed = done[layer - max(1, ahead)] if layer >= max(1, ahead) else 0
