"""Averages the squares over the ranks."""


# caught by: test_clip
# mistake: sum_or_mean
# %% clip: changed
# -     norm = squares.sqrt()
# +     norm = (squares / dist.get_world_size()).sqrt()
