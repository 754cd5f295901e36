"""The root knows ranks 0 to 3."""
# caught by: test_broadcast
# mistake: some_ranks_only
# %% broadcast: changed
# -         for other in range(n):
# +         for other in range(min(n, 4)):
# @@
# -     else:
# +     elif rank < 4:
