"""Tests of server_capacity/search/."""
