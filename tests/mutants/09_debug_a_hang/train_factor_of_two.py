"""The factor is guessed."""
# caught by: test_train
# mistake: symptom_for_cause
# %% why_training_diverges
def why_training_diverges():
    return {"cause": "sum for mean", "worse": 11, "times": 2}
