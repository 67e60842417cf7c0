"""Recorded conversations: files of them, each of their formats, and the texts that are sent again."""
