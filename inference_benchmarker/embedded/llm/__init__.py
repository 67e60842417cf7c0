"""The embedded LLM engine: continuous batching over a paged KV cache, in steps whose lengths a profile gives. Pure."""
