"""From measured capacities to what to deploy: instances, scaling policies and money."""
