"""Compares with worth a collective and rank."""
# caught by: test_straggler
# mistake: per_piece_or_in_all
# %% straggler: changed
# -     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * len(enters):
# +     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * len(enters) * len(charges):
