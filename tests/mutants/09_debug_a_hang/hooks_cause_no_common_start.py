"""Models that differ, so they must have begun differently."""
# caught by: test_train_with_hooks
# mistake: symptom_for_cause
# %% why_models_differ
def why_models_differ():
    return {"cause": "no common start", "bytes_a_step": 124, "given": "Parameter"}
