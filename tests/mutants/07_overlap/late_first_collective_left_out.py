"""The first collective warms up."""
# caught by: test_straggler
# mistake: last_left_out
# %% straggler: changed
# -     for times in enters:
# +     for times in enters[1:]:
