"""torch's own all_gather."""


# %% quantised_gather: changed
# -     all_gather(integers.view(-1))
# +     dist.all_gather(list(integers), integers[rank].clone())
