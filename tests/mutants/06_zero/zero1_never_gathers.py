"""The parameters are never gathered again after the step."""


# caught by: test_Zero1
# says: were they handed round?
# %% Zero1: changed
# -             all_gather(flat.whole)
