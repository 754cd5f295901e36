"""Takes all layers to be like the last one."""
# caught by: test_all_reduces
# mistake: one_for_all
# says: the begin of all-reduce 0 is
# %% all_reduces: changed
# -         now += backwards[layer]
# -         filling += sizes[layer]
# +         now += backwards[-1]
# +         filling += sizes[-1]
