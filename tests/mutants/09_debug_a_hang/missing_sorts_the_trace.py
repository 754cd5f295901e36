"""Sorts the trace that it was given."""
# caught by: test_first_missing
# mistake: changes_its_input
# %% first_missing: changed
#       """``(number, ranks)`` of the first all_reduce, from 1, that not all ranks called: who did not. None if all did."""
# +     trace.sort(key=lambda op: op.rank)
#       calls = [0] * world_size
