"""An all-reduce of int8: a byte for each number."""


# caught by: test_majority
# mistake: too_much_sent
# says: rank 0 called all_reduce; build it from all_gather
# %% majority: changed
# -     packed = pack_signs(x)
# -     everyones = [torch.empty_like(packed) for _ in range(dist.get_world_size())]
# -     dist.all_gather(everyones, packed)
# -     votes = sum(unpack_signs(each, x.numel()) for each in everyones)
# +     votes = torch.where(x >= 0, 1, -1).to(torch.int8)
# +     dist.all_reduce(votes)
