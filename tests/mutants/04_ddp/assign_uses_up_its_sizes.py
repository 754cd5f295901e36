"""Takes the sizes out of the list that it was given: the caller has an empty one."""


# caught by: test_assign
# mistake: changes_its_input
# says: changed the list of sizes that it was given
# %% assign: changed
# -     for i in reversed(range(len(sizes))):
# +     while sizes:
# @@
# -         buckets[-1].append(i)
# -         room -= sizes[i]
# +         room -= sizes.pop()
# +         buckets[-1].append(len(sizes))
