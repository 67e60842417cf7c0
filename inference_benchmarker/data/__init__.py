"""JSON and types: read within bounds, held against what is declared, with a digest."""
