"""Samples of times: their statistics, exact or from counted buckets, added up part by part. Pure."""
