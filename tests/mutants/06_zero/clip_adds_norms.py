"""Adds up the ranks' norms, not their squares."""


# caught by: test_clip
# %% clip: changed
# -     dist.all_reduce(squares)
# @@
#       norm = squares.sqrt()
# +     dist.all_reduce(norm)
