"""A single rank has the bus bandwidth of two."""
# caught by: test_bandwidths
# mistake: special_case
# %% bandwidths: changed
#       columns = line.split()
# +     n = max(n, 2)
