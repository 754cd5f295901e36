"""One memory for all objects of the class: a new one begins with what another left."""


# caught by: test_ErrorFeedback
# mistake: state_between_steps
# says: in the first step nothing was left out yet, by this object
# %% ErrorFeedback: changed
# -     def __init__(self, compress):
# -         self.compress = compress
# -         self.memory = 0.0
# +     memories = {}
# +
# +     def __init__(self, compress):
# +         self.compress = compress
# @@
# -         corrected = gradient + self.memory
# +         corrected = gradient + self.memories.get(gradient.numel(), 0.0)
# @@
# -         self.memory = corrected - mine
# +         self.memories[gradient.numel()] = corrected - mine
