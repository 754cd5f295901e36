"""Holds views of the reduced vectors, which stay alive in full."""


# caught by: test_Zero2
# mistake: kept_in_memory
# %% mean_gradient: changed
# -     return reduce_scatter(vector).clone()
# +     return reduce_scatter(vector)
