"""The sizes of a bucket are added up in the list that was given."""


# caught by: test_assign
# mistake: changes_its_input
# says: changed the list of sizes that it was given
# %% assign: changed
# -     buckets, room = [], 0
# +     buckets = []
# @@
# -         if room <= 0:
# +         if i + 1 == len(sizes) or sizes[i + 1] >= cap:
# @@
# -             room = cap
# +         else:
# +             sizes[i] += sizes[i + 1]
# @@
# -         room -= sizes[i]
