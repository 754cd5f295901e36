"""AdamW's numbers are this rank's alone."""


# caught by: test_checkpoint
# mistake: not_exchanged
# %% checkpoint: changed
# -             all_gather(whole)
# +             if key == "parameter":
# +                 all_gather(whole)
