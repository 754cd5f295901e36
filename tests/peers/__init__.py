"""What trainers do in programs that were not written for them: ours, torch's, and one process on the whole batch.

``trainers``    one interface for all of them
``behaviours``  small programs, each written once for all trainers
``outcomes``    runs a program under a trainer and says in a word or a sentence what came of it
"""
