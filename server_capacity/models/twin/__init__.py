"""The twin: a queueing model of the endpoint, fitted on what was measured, judged on what it has not seen. Pure."""
