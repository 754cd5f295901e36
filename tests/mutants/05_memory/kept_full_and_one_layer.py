"""Full, and one layer that is being computed again."""
# caught by: test_kept_bytes
# mistake: other_algorithm
# %% kept_bytes: changed
# -     return layers * of_a_layer[recomputation]
# +     return layers * of_a_layer[recomputation] + (of_a_layer['none'] if recomputation == 'full' else 0)
