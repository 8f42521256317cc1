/* Arithmetic of the online policies for which numpy has no function: see mapper/online/arithmetic.py. */
#ifndef NUMAPLAN_ONLINE_H
#define NUMAPLAN_ONLINE_H

#include <stdint.h>

/* A column of its own for each row, so that the costs (rows x columns, all finite, rows <= columns) add up to least.
 * chosen: rows. Returns 0, or -1 without memory. */
int online_assign(int64_t rows, int64_t columns, const double *cost, int64_t *chosen);

/* Adds the products of the weights of all pairs of entries of one page to matrix[thread][thread] (threads x threads).
 * page: ascending. */
void online_pair(int64_t entries, const int64_t *page, const int64_t *thread, const double *weight, int64_t threads,
                 double *matrix);

/* The group of each key, by radix sort. group: count, from 0 in order of the keys, none of which is negative; distinct:
 * room for count, the groups' keys. Returns how many groups there are, or -1 without memory. */
int64_t online_group(int64_t count, const int64_t *key, int64_t *group, int64_t *distinct);

#endif
