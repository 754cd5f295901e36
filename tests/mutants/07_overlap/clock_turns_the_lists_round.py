"""Turns the lists round where they are."""
# caught by: test_all_reduces
# mistake: changes_its_input
# %% all_reduces: changed
#       now = link_free = filling = 0
# +     backwards.reverse()
# +     sizes.reverse()
#       found = []
# -     for layer in reversed(range(len(sizes))):
# +     for layer in range(len(sizes)):
#           now += backwards[layer]
#           filling += sizes[layer]
# -         if filling >= cap or layer == 0:
# +         if filling >= cap or layer == len(sizes) - 1:
#               begin = max(now, link_free)
