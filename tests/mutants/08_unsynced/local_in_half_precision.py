"""Sends bf16, which has half of the bytes."""


# caught by: test_local_sgd
# mistake: type_fixed
# says: was something rounded, to 16 bits?
# %% local_sgd: changed
# -                     dist.all_reduce(p.data)
# -                     p.data /= dist.get_world_size()
# +                     half = p.data.bfloat16()
# +                     dist.all_reduce(half)
# +                     p.data.copy_(half / dist.get_world_size())
