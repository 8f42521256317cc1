"""How far medians of few measurements may be off."""


def median_interval(count: int) -> tuple[int, int]:
    """Ranks between which the median of all is in 95 of 100 cases, by how often a coin falls."""
    chance, below = 0.5**count, 0
    tail = chance
    while below < (count - 1) // 2 and tail <= 0.025:
        below += 1
        chance *= (count - below + 1) / below
        tail += chance
    below = max(0, below - 1)
    return below, count - 1 - below
