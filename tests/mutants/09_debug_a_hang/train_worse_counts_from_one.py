"""Steps counted from 1."""
# caught by: test_train
# mistake: one_off
# %% why_training_diverges: changed
# -     return {"cause": "sum for mean", "worse": 11, "times": 4}
# +     return {"cause": "sum for mean", "worse": 12, "times": 4}
