"""Training without full synchronisation: parameter servers, local SGD, gossip, a quorum, compression."""
