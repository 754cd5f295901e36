"""The last layer's gradient stays after the step."""
# caught by: test_Zero1
# mistake: one_of_a_kind
# %% Zero1: changed
# -             self.gradients[i] = None
# +             if i < len(self.flats) - 1:
# +                 self.gradients[i] = None
