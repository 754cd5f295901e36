"""Velocities are kept for all models together."""
# caught by: test_OuterStep
# mistake: one_for_all
# %% OuterStep: changed
# -         self.velocities = [torch.zeros_like(start) for start in self.starts]
# +         OuterStep.velocities = [torch.zeros_like(start) for start in self.starts]
