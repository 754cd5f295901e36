"""Cuts one vector by the lengths of the parameters: a single number has none."""


# caught by: test_OuterStep
# mistake: wrong_kind
# says: raised
# %% OuterStep: changed
# -         self.velocities = [torch.zeros_like(start) for start in self.starts]
# +         self.velocities = [torch.zeros(len(start), *start.shape[1:]) for start in self.starts]
