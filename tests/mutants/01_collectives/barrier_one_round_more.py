"""n.bit_length() rounds: one too many where N is a power of two, and then a rank sends to itself."""


# caught by: test_barrier
# mistake: one_off
# says: a rank sends to itself
# %% barrier: changed
# -     for k in range((n - 1).bit_length()):
# +     for k in range(n.bit_length()):
