"""Hands the parameters round after the first step alone."""


# caught by: test_Zero1
# mistake: state_between_steps
# %% Zero1: changed
# -             all_gather(flat.whole)
# +             if self.states[i]["step"] == 1:
# +                 all_gather(flat.whole)
