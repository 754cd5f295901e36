"""Subcommands of ``ringzero`` that answer a question about a machine or a model."""
