"""Figures -> pictures for documents and machines without a browser, drawn by matplotlib."""
