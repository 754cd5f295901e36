"""Rounds to whole tokens."""
# caught by: test_least_tokens
# mistake: rounded_wrongly
# says: of it)
# %% least_tokens: changed
# -     return (sent / bandwidth) / (computed / flops)
# +     return round((sent / bandwidth) / (computed / flops))
