"""Returns a copy, and keeps the whole vector in the flat."""
# caught by: test_mean_gradient
# mistake: kept_in_memory
# %% mean_gradient: changed
# -     return reduce_scatter(vector).clone()
# +     flat.reduced = reduce_scatter(vector)
# +     return flat.reduced.clone()
