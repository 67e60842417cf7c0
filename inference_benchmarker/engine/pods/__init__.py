"""A wave from the pods of a cluster: the objects of Kubernetes that it consists of."""
