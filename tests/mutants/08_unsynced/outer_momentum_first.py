"""The velocity takes the new change only after the step: μ·v is that of the round before."""


# caught by: test_OuterStep
# mistake: wrong_place
# says: ordinary momentum
# %% OuterStep: changed
# - class OuterStep:
# -     """Gradient descent with Nesterov's momentum on what each round of local steps has changed."""
# -
# -     def __init__(self, parameters, lr, momentum):
# -         self.parameters, self.lr, self.momentum = parameters, lr, momentum
# -         self.starts = [p.detach().clone() for p in parameters]
# -         self.velocities = [torch.zeros_like(start) for start in self.starts]
# -
# -     @torch.no_grad()
# -     def step(self):
# -         """End a round: all ranks have the new parameters."""
# -         for p, start, velocity in zip(self.parameters, self.starts, self.velocities, strict=True):
# -             change = start - p
# -             dist.all_reduce(change)
# -             change /= dist.get_world_size()
# -             velocity.mul_(self.momentum).add_(change)
# -             start.sub_(self.lr * (change + self.momentum * velocity))
# -             p.copy_(start)
# + class OuterStep:
# +     """Gradient descent with Nesterov's momentum on what each round of local steps has changed."""
# +
# +     def __init__(self, parameters, lr, momentum):
# +         self.parameters, self.lr, self.momentum = parameters, lr, momentum
# +         self.starts = [p.detach().clone() for p in parameters]
# +         self.velocities = [torch.zeros_like(start) for start in self.starts]
# +
# +     @torch.no_grad()
# +     def step(self):
# +         """End a round: all ranks have the new parameters."""
# +         for p, start, velocity in zip(self.parameters, self.starts, self.velocities, strict=True):
# +             change = start - p
# +             dist.all_reduce(change)
# +             change /= dist.get_world_size()
# +             start.sub_(self.lr * (change + self.momentum * velocity))
# +             velocity.mul_(self.momentum).add_(change)
# +             p.copy_(start)
