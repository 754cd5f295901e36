"""Two lines changed round: what is handed round is what was there before the step."""
# caught by: test_Zero1
# says: were they handed round?
# %% Zero1: changed
# -             adamw(flat.shard, self.gradients[i], self.states[i])
# -             all_gather(flat.whole)
# +             all_gather(flat.whole)
# +             adamw(flat.shard, self.gradients[i], self.states[i])
