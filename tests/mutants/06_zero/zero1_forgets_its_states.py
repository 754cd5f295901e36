"""AdamW begins anew in each step."""


# caught by: test_Zero1
# mistake: state_between_steps
# %% Zero1: changed
# -             adamw(flat.shard, self.gradients[i], self.states[i])
# +             adamw(flat.shard, self.gradients[i], {})
