"""scikit-learn's k-means, whose distances are computed by OpenMP threads."""

import numpy as np
from sklearn.cluster import KMeans

points = np.random.default_rng(1).random((200_000, 16))
found = KMeans(8, n_init=1, init=points[:8], max_iter=4, tol=0.0).fit(points)
print(f"checked {found.inertia_:.0f}")
