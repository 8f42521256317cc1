"""Making, predicting, comparing and judging plans."""
