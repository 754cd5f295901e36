"""The paper's bytes of a layer taken for the model's."""
# caught by: test_kept_bytes
# mistake: one_for_all
# %% kept_bytes: changed
# -     return layers * of_a_layer[recomputation]
# +     return of_a_layer[recomputation]
