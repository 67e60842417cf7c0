"""Instances that come and go, and the policies of Application Auto Scaling that decide how many."""
