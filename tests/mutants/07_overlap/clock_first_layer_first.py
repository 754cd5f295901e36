"""Goes through the layers forwards."""
# caught by: test_all_reduces
# mistake: order_of_layers
# says: the begin of all-reduce
# %% all_reduces: changed
# -     for layer in reversed(range(len(sizes))):
# +     for layer in range(len(sizes)):
# @@
# -         if filling >= cap or layer == 0:
# +         if filling >= cap or layer == len(sizes) - 1:
