"""The scale is that of torch's own clip_grad_norm_, behind a barrier; whole tensors are gathered one by one."""


# %% clip
def clip(shards, max_norm):
    norms = torch.stack([torch.linalg.vector_norm(shard) for shard in shards])
    total = (norms**2).sum().reshape(1)
    dist.barrier()
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    norm = total**0.5
    scale = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    for shard in shards:
        shard.mul_(scale)
    return norm


# %% checkpoint
def checkpoint(module, zero):
    whole = {}
    for flat, state in zip(zero.flats, zero.states):
        vectors = {"parameter": flat.shard, "exp_avg": state["exp_avg"], "exp_avg_sq": state["exp_avg_sq"]}
        for key, shard in vectors.items():
            vector = torch.zeros_like(flat.whole, memory_format=torch.contiguous_format)
            vector = torch.zeros(flat.whole.shape)
            vector[flat.owned].copy_(shard)
            whole[key, id(flat.parameters[0])] = all_gather(vector)
    result = {}
    for name, p in module.named_parameters():
        for flat in zero.flats:
            for q in flat.parameters:
                if q is p:
                    start = sum(x.numel() for x in flat.parameters[: [id(x) for x in flat.parameters].index(id(p))])
                    result[name] = {
                        key: whole[key, id(flat.parameters[0])][start : start + p.numel()].reshape(p.shape).clone()
                        for key in ("exp_avg_sq", "exp_avg", "parameter")
                    }
    return result
