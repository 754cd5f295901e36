"""Looks at the first five ranks."""
# caught by: test_straggler
# mistake: some_ranks_only
# %% straggler: changed
#       for times in enters:
# +         times = times[:5]
