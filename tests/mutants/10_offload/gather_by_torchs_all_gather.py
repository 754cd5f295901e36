"""torch's own all_gather."""


# caught by: test_quantised_gather
# mistake: ready_made
# says: rank 0 called all_gather; build it from ringzero's collectives
# %% quantised_gather: changed
# -     all_gather(integers.view(-1))
# +     dist.all_gather(list(integers), integers[rank].clone())
