"""The search for a capacity, rankings of variants, proofs, and the plan made of them."""
