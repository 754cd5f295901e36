"""Cuts by a number of layers, as if all had the mean size."""
# caught by: test_all_reduces
# mistake: one_for_all
# says: its bucket is full at
# %% all_reduces: changed
# -     now = link_free = filling = 0
# +     now = link_free = filling = count = 0
# @@
# -         if filling >= cap or layer == 0:
# +         count += 1
# +         if count * sum(sizes) / len(sizes) >= cap or layer == 0:
# @@
# -             filling = 0
# +             filling = count = 0
