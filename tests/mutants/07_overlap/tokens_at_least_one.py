"""A rank that is alone needs a token, too."""
# caught by: test_least_tokens
# mistake: special_case
# says: the number of tokens is 1, expected 0
# %% least_tokens: changed
# -     return (sent / bandwidth) / (computed / flops)
# +     return max(1, (sent / bandwidth) / (computed / flops))
