"""Looks up how many ranks are enough: right up to six."""
# caught by: test_majority
# mistake: some_ranks_only
# %% majority: changed
# -     return torch.where(votes >= 0, 1.0, -1.0)
# +     n = dist.get_world_size()
# +     enough = {1: 1, 2: 1, 3: 2, 4: 2}.get(n, 3)
# +     return torch.where((votes + n) / 2 >= enough, 1.0, -1.0)
