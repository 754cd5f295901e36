"""Benchmarks: ours beside a peer, measured alternately in one run. ``ringzero bench NAME`` runs them.

Each is a module with a generator ``rows``: its parameters are the command's options, and it measures and yields rows.
What they share is in ``runner``.
"""
