"""Returns at once."""
# caught by: test_barrier
# mistake: not_exchanged
# %% barrier
def barrier():
    pass
