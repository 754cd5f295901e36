"""Reduces a layer for each of its parameters, with zeros for the others."""


# caught by: test_Zero2
# mistake: too_much_sent
# says: sent 83,804 bytes a step, 2.25 times the parameters'
# %% Zero2: changed
# -         if any(p.grad is None for p in flat.parameters):
# -             return
