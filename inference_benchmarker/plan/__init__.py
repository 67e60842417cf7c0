"""The load to offer: the plan, its schedule of arrivals, its limits. Pure."""
