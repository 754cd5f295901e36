"""Takes each piece to float64 and back, which rounds large whole numbers."""
# caught by: test_pipelined_broadcast
# mistake: type_fixed
# says: int64
# %% pipelined_broadcast: changed
#           if place < n - 1:
# +             piece.copy_(piece.double())
