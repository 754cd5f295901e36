"""Reduces early, but keeps all whole gradients until the end, as NumPy arrays in a global."""


# caught by: test_Zero2
# mistake: kept_in_memory
# says: are kept in NumPy arrays
# %% Zero2: changed
# + WHOLE = {}
# +
# +
#   class Zero2(Zero1):
# @@
#               return
# +         for p in flat.parameters:
# +             WHOLE[id(p)] = p.grad.numpy().copy()
# @@
#           """Nothing is left to do."""
# +         WHOLE.clear()
