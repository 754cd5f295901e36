"""Knows GPT-2 and the model above."""
# caught by: test_gpt_parameters
# mistake: shown_cases_only
# says: counted 209,472, expected 209,600: -128
# %% gpt_parameters
def gpt_parameters(layers, hidden, vocab, positions, tied=True):
    return {(12, 768): 124_439_808, (4, 64): 209_472}[layers, hidden]
