"""One count of steps for all layers, in one state."""


# caught by: test_Zero1
# mistake: one_for_all
# %% Zero1: changed
#           for i, flat in enumerate(self.flats):
# +             if self.states[i]:
# +                 self.states[i]["step"] = self.states[0]["step"]
