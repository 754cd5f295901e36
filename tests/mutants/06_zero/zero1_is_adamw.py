"""AdamW with no sharding passed off as ZeRO-1: states of the whole on every rank."""


# caught by: test_Zero1
# mistake: stages_mixed_up
# says: holds 76,896 bytes besides the parameters; two numbers for each of the 2,322 that it owns
# %% Zero1: changed
# -             adamw(flat.shard, self.gradients[i], self.states[i])
# -             all_gather(flat.whole)
# +             gradient = torch.empty_like(flat.whole)
# +             gradient[flat.owned] = self.gradients[i]
# +             adamw(flat.whole, all_gather(gradient), self.states[i])
