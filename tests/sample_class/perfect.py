"""The reference, cell for cell."""
