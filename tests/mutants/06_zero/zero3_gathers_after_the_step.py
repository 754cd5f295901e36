"""Hands the parameters round after the step as stages 1 and 2 do: one all-gather too many."""


# caught by: test_Zero3
# mistake: too_much_sent
# %% Zero3: changed
#               self.gradients[i] = None
# +             flat.gather()
# +             flat.free()
