"""The list begins with the first layer's bucket."""
# caught by: test_all_reduces
# mistake: reversed
# %% all_reduces: changed
# -     return found
# +     return found[::-1]
