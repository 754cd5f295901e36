"""The course around ringzero: labs and their checks, grading, the figures and calculators of pages, benches."""
