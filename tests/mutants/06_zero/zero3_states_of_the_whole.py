"""Gathers parameters and gradient for the step, whose states are those of the whole."""


# caught by: test_Zero3
# mistake: stages_mixed_up
# %% Zero3: changed
# -             adamw(flat.shard, self.gradients[i], self.states[i])
# +             flat.gather()
# +             gradient = torch.empty_like(flat.whole)
# +             gradient[flat.owned] = self.gradients[i]
# +             adamw(flat.whole, all_gather(gradient), self.states[i])
# +             flat.shard.copy_(flat.whole[flat.owned])
# +             flat.free()
