"""Small tasks that really learn, for pages and benchmarks that compare ways to train."""
