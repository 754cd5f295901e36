"""Training scripts in the shapes that people know, small. Each ends with a line of seconds; with --hang it hangs.

They know nothing of ringzero: ``torchrun`` runs them as well.
"""
