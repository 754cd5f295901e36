"""Two lines changed round: what is handed round is what was there before the step."""
# caught by: test_Zero1
# mistake: too_early
# says: all shards are right: hand them round after the step
# %% Zero1: changed
# -             adamw(flat.shard, self.gradients[i], self.states[i])
# -             all_gather(flat.whole)
# +             all_gather(flat.whole)
# +             adamw(flat.shard, self.gradients[i], self.states[i])
