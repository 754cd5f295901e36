"""Benchmarks: ours beside a peer, measured alternately in one run. ``ringzero bench NAME`` runs them.

A row is ``{name, metric, ours, peer, peer_name, ratio, unit}``; ``ratio`` above 1 means ours is better.
"""
