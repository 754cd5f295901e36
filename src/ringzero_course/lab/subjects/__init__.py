"""Each lab's specifications in one file or two, with what they run on the ranks, their claims and their oracles."""
