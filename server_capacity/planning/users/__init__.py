"""Replicas of a language model for users who have conversations, by the way in which a router finds a replica."""
