"""The optimizer has states for the whole vector."""


# caught by: test_Zero2
# mistake: stages_mixed_up
# %% Zero2: changed
#           """Nothing is left to do."""
# +
# +     def step(self):
# +         for i, flat in enumerate(self.flats):
# +             gradient = torch.empty_like(flat.whole)
# +             gradient[flat.owned] = self.gradients[i]
# +             adamw(flat.whole, all_gather(gradient), self.states[i])
# +             self.gradients[i] = None
