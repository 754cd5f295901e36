"""What goes wrong inside is never heard of."""
# caught by: test_Accumulating
# mistake: one_of_a_kind
# says: kept to itself an exception
# %% Accumulating: changed
#           try:
#               yield
# +         except Exception:
# +             pass
#           finally:
