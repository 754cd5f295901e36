"""The mean, where the sum was asked for."""
# caught by: test_reduce
# %% reduce: changed
#               tensor += landing
# +     tensor //= n
