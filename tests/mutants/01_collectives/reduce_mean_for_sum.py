"""The mean, where the sum was asked for."""
# caught by: test_reduce
# mistake: sum_or_mean
# %% reduce: changed
#               tensor += landing
# +     tensor //= n
