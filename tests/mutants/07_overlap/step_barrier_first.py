"""A barrier before the first layer."""
# caught by: test_backward_pass
# mistake: no_overlap
# %% backward_pass: changed
#       filling, travelling = [], []
# +     dist.barrier()
#       for number in reversed(range(len(layers))):
