"""Pays an alpha for each layer of a bucket."""
# caught by: test_all_reduces
# mistake: counted_twice
# says: the end of all-reduce 0
# %% all_reduces: changed
# -         filling += sizes[layer]
# +         filling += sizes[layer] + alpha / beta
