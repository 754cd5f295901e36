"""A single rank makes no outer step."""


# caught by: test_OuterStep
# mistake: special_case
# says: nothing but the rank's own steps changed it
# %% OuterStep: changed
# -         for p, start, velocity in zip(self.parameters, self.starts, self.velocities, strict=True):
# +         if dist.get_world_size() == 1:
# +             return
# +         for p, start, velocity in zip(self.parameters, self.starts, self.velocities, strict=True):
