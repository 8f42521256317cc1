"""The search for the cheapest placement: candidates, how they are improved, and which of them is the best."""
