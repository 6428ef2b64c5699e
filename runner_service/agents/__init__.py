"""Agents that a runner can serve, and the protocol that they share."""
