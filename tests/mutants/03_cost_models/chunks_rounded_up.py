"""Always rounds up."""
# caught by: test_best_chunks
# mistake: rounded_wrongly
# %% best_chunks: changed
# -     return min(max(1, floor(best)), max(1, ceil(best)), key=duration)
# +     return max(1, ceil(best))
