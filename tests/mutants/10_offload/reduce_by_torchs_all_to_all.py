"""torch's own all_to_all_single."""


# caught by: test_quantised_reduce_scatter
# mistake: ready_made
# says: rank 0 called all_to_all; build it from ringzero's collectives
# %% quantised_reduce_scatter: changed
# -     all_to_all(got.view(-1), integers.view(-1))
# +     dist.all_to_all_single(got.view(-1), integers.view(-1))
