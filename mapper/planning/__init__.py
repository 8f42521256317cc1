"""Plans made, predicted, compared and judged."""
