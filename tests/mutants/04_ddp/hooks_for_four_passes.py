"""Averages in the first four backward passes; later ones leave each rank its own gradient."""


# caught by: test_average_in_hooks
# mistake: some_times_only
# says: after 6 steps
# %% average_in_hooks: changed
#       """From now on every backward pass leaves the mean over the ranks in the gradients."""
#
# +     times = {}
# +
# @@
#       def average(parameter):
# +         times[parameter] = times.get(parameter, 0) + 1
# +         if times[parameter] > 4:
# +             return
