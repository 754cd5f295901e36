"""Shards of the gradients stay after the step."""


# caught by: test_Zero1
# %% Zero1: changed
# -             self.gradients[i] = None
