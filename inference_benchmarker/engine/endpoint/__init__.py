"""An endpoint as a factories file or an address describes it: read, its settings, its payloads, its requests."""
