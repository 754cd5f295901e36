"""The signs are gathered as fp32."""


# caught by: test_majority
# mistake: too_much_sent
# says: rank 0 gave all_gather 256 bytes; 64 signs are 8
# %% majority: changed
# -     packed = pack_signs(x)
# -     everyones = [torch.empty_like(packed) for _ in range(dist.get_world_size())]
# -     dist.all_gather(everyones, packed)
# -     votes = sum(unpack_signs(each, x.numel()) for each in everyones)
# +     signs = torch.where(x >= 0, 1.0, -1.0)
# +     everyones = [torch.empty_like(signs) for _ in range(dist.get_world_size())]
# +     dist.all_gather(everyones, signs)
# +     votes = sum(everyones)
