"""Gathers the model and does not free it."""


# caught by: test_checkpoint
# %% checkpoint
def checkpoint(module, zero):
    """Whole parameters and AdamW's numbers by the parameters' names, from all ranks' shards."""
    name_of, saved = {p: name for name, p in module.named_parameters()}, {}
    for flat in zero.flats:
        if hasattr(flat, "gather"):
            flat.gather()
    for flat, state in zip(zero.flats, zero.states, strict=True):
        for key, shard in (("parameter", flat.shard), *((key, state[key]) for key in ("exp_avg", "exp_avg_sq"))):
            whole = torch.empty(flat.whole.numel())
            whole[flat.owned] = shard
            all_gather(whole)
            for p, part in zip(flat.parameters, whole.split([p.numel() for p in flat.parameters]), strict=True):
                saved.setdefault(name_of[p], {})[key] = part.view(p.shape)
    return saved
