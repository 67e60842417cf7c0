"""The surface: capacities at lengths nobody sent, by an LLM engine fitted to what was measured at others. Pure."""
