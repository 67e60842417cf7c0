"""A metrics page that is scraped while a wave runs: its rounds, and the rows that follow from them."""
