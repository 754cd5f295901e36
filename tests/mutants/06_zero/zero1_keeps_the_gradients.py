"""Shards of the gradients stay after the step."""


# caught by: test_Zero1
# mistake: kept_in_memory
# %% Zero1: changed
# -             self.gradients[i] = None
