"""Gathers all layers as fast as the link allows: ZeRO-3 saves nothing."""
# caught by: test_forward_pass
# mistake: kept_in_memory
# says: that is as if any number of layers could be gathered ahead
# %% forward_pass: changed
# -         freed = done[layer - ahead - 1] if layer > ahead else 0
# +         freed = 0
