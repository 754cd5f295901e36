"""AdamW's numbers are this rank's alone."""


# caught by: test_checkpoint
# %% checkpoint: changed
# -             all_gather(whole)
# +             if key == "parameter":
# +                 all_gather(whole)
