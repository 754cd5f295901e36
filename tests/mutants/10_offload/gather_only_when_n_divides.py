"""All shards are taken to be as long as this one."""


# caught by: test_quantised_gather
# mistake: divisible_only
# %% quantised_gather: changed
# -     sizes = [stop - start for start, stop in zip(bounds, bounds[1:], strict=False)]
# +     sizes = n * [bounds[1]]
