/* Multilevel bisection: bundles are the vertices of a graph; their extra is what each costs on side 1 beyond side 0
 * beside the cut. */
#ifndef NUMAPLAN_BISECT_H
#define NUMAPLAN_BISECT_H

#include "bundles.h"

/* Improve a cut by moving one vertex at a time ([FM]). side[]: 0 or 1; wanted: weight of side 0;
 * slack: how far off it may end; wide: it may stray far from balance on its way, which finds better cuts of trees and
 * worse ones of grids. Returns the cut, or a negative number without memory. */
double cut_refine(const struct bundles *graph, bool wide, int wanted, int slack, int passes, signed char *side);

/* Where the graph, of single threads, is a forest that is not too large: the least cut with exactly `wanted` vertices
 * on side 0; shaken: up to twice as much talk as there is, by chance, for another cut that is not much dearer. False,
 * and nothing done, where it is not, or without memory. */
bool cut_forest(const struct bundles *graph, struct rng *rng, bool shaken, int wanted, signed char *side);

#endif
