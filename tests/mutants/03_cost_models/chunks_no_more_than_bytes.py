"""No more pieces than bytes... than ranks."""
# caught by: test_best_chunks
# mistake: rule_of_thumb
# %% best_chunks: changed
#       best = sqrt((n - 2) * size * beta / alpha)  # where the derivative in K is 0
# +     best = min(best, n)
#       return min(max(1, floor(best)), max(1, ceil(best)), key=duration)
