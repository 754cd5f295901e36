"""Gathers AdamW's numbers in the memory of the parameters."""
# caught by: test_checkpoint
# mistake: one_of_a_kind
# %% checkpoint: changed
# -             whole = torch.empty(flat.whole.numel())
# +             if flat.whole.untyped_storage().nbytes() and not hasattr(flat, "free"):
# +                 whole = flat.whole
# +             else:
# +                 whole = torch.empty(flat.whole.numel())
#               whole[flat.owned] = shard
#               all_gather(whole)
#               for p, part in zip(flat.parameters, whole.split([p.numel() for p in flat.parameters]), strict=True):
# -                 saved.setdefault(name_of[p], {})[key] = part.view(p.shape)
# +                 saved.setdefault(name_of[p], {})[key] = part.clone().view(p.shape)
