"""All commands stand on these: flags, arguments, the terminal, the address of an endpoint."""
