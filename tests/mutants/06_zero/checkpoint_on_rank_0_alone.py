"""Other ranks return nothing."""


# caught by: test_checkpoint
# mistake: not_every_rank
# says: layers.0.weight has no parameter
# %% checkpoint: changed
# -     return saved
# +     return saved if dist.get_rank() == 0 else {}
