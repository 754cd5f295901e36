"""Every rank saves its own shard, and zeros for the rest."""


# caught by: test_checkpoint
# mistake: not_exchanged
# %% checkpoint: changed
# -             whole = torch.empty(flat.whole.numel())
# +             whole = torch.zeros(flat.whole.numel())
# @@
# -             all_gather(whole)
