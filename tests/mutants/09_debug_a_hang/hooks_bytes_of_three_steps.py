"""Bytes of three steps."""
# caught by: test_train_with_hooks
# mistake: counted_twice
# %% why_models_differ: changed
# -     return {"cause": "wrong tensor", "bytes_a_step": 124, "given": "Parameter"}
# +     return {"cause": "wrong tensor", "bytes_a_step": 372, "given": "Parameter"}
