"""SageMaker's control plane: models, endpoint configurations, endpoints and inference components, made and removed."""
