"""Each lab's specifications in one file, with what they run on the ranks, their claims and their oracles."""
