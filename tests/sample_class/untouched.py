"""Opened, and handed in."""
# rest: as handed out
