"""The start is the parameter itself, so nothing ever changed."""


# caught by: test_OuterStep
# mistake: copy_or_view
# says: nothing but the rank's own steps changed it
# %% OuterStep: changed
# -         self.starts = [p.detach().clone() for p in parameters]
# +         self.starts = [p.detach() for p in parameters]
