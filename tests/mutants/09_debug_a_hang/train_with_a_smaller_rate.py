"""Cures the symptom: the step is short enough not to diverge."""
# caught by: test_train
# mistake: symptom_for_cause
# %% train
def train(seed, samples, lr, steps):
    return broken_train(seed, samples, min(lr, 0.02), steps)
