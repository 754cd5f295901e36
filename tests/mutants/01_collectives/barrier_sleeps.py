"""Waits half a second, in the hope that everyone has come by then."""
# caught by: test_barrier
# mistake: not_exchanged
# %% barrier
def barrier():
    import time

    time.sleep(0.5)
