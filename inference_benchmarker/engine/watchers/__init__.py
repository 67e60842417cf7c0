"""A running wave in the process that leads it, and its watchers: each looks at one thing, and does what follows."""
