"""Returns the view, which keeps the whole gradient alive."""


# caught by: test_mean_gradient
# mistake: kept_in_memory
# says: is a view that keeps 288 bytes alive
# %% mean_gradient: changed
# -     return reduce_scatter(vector).clone()
# +     return reduce_scatter(vector)
