"""The root adds what ranks 0 to 3 have."""
# caught by: test_reduce
# mistake: some_ranks_only
# %% reduce: changed
# -         dist.send(tensor, dst=root)
# -         return
# +         if rank < 4:
# +             dist.send(tensor, dst=root)
# +         return
# @@
# -     for other in range(n):
# +     for other in range(min(n, 4)):
