"""Adds up the ranks' norms, not their squares."""


# caught by: test_clip
# mistake: one_of_a_kind
# %% clip: changed
# -     dist.all_reduce(squares)
# @@
#       norm = squares.sqrt()
# +     dist.all_reduce(norm)
