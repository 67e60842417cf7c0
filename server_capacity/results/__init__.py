"""Stored results: their types, the codec that checks them, their texts, and their folders."""
