"""The fleet simulated: instances behind a router, a policy that adds and removes them, a load over time. Pure."""
