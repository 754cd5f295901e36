"""What authors of labs use: wrong and right solutions of a lab tried, the sample class, a lab's notebook run live."""
