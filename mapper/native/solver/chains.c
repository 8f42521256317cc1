/* Chains of moves: someone goes to another node, someone of that node goes on, and so on, until someone takes the seat
 * that the first one left. A swap is the shortest chain. */
#include "seating.h"

#include <math.h>

enum { DEPTH = 10, LONGEST = 40 };

static const double STRAY = 0.12; /* of what a thread says in the mean: how much dearer a chain may get on its way */

static void list_members(struct seating *s) {
    int at = 0;
    for (int x = 0; x < s->k; x++) s->count[x] = 0;
    for (int i = 0; i < s->n; i++) s->count[s->node[i]]++;
    for (int x = 0; x < s->k; x++) {
        s->first[x] = at;
        at += s->count[x] + 2; /* one more than that may be there for a while */
        s->count[x] = 0;
    }
    for (int i = 0; i < s->n; i++) {
        int x = s->node[i];
        s->position[i] = s->first[x] + s->count[x]++;
        s->member[s->position[i]] = i;
    }
}

static void relocate(struct seating *s, int i, int x) {
    int own = s->node[i], last = s->member[s->first[own] + --s->count[own]];
    s->member[s->position[i]] = last;
    s->position[last] = s->position[i];
    s->position[i] = s->first[x] + s->count[x]++;
    s->member[s->position[i]] = i;
    seating_move(s, i, x);
}

/* Who of a node would go on at least cost, and who would fill the hole; negative: nobody. */
struct step {
    int onward, closer;
    double onward_cost, closer_cost;
};

static struct step next_step(struct seating *s, int x, int hole, int weight) {
    struct step step = {-1, -1, INFINITY, INFINITY};
    const int *member = s->member + s->first[x];
    for (int m = 0, members = s->count[x]; m < members; m++) {
        int i = member[m], unused;
        if (s->locked[i] || s->level->weight[i] != weight) continue;
        const double *gain = seating_gain(s, i);
        double close = gain[hole] - gain[x], go = seating_least_elsewhere(s, i) - gain[x];
        if (close < step.closer_cost) step.closer_cost = close, step.closer = i;
        if (go >= step.onward_cost) continue;
        if (s->low_at[i] == hole) go = seating_least_but(s, i, hole, &unused) - gain[x];
        if (go < step.onward_cost) step.onward_cost = go, step.onward = i;
    }
    *s->rules->work += 30 + 3 * (uint64_t)s->count[x];
    return step;
}

/* Moves the chain that begins with i going to x, as far as it gains; moved[]: who moved, and how many they are. */
static int run_chain(struct seating *s, int i, int x, double stray) {
    const int hole = s->node[i], weight = s->level->weight[i];
    int count = 0, kept = 0, closer = -1;
    double start = s->cost, best = start - 1e-9 * stray;
    for (;;) {
        s->from[count] = s->node[i];
        s->moved[count++] = i;
        s->locked[i] = true;
        relocate(s, i, x);
        struct step step = next_step(s, x, hole, weight);
        if (step.closer >= 0 && s->cost + step.closer_cost < best) {
            best = s->cost + step.closer_cost;
            kept = count;
            closer = step.closer;
        }
        bool far = count - kept >= DEPTH || count >= LONGEST || s->cost + step.onward_cost - start > stray;
        if (far || step.onward < 0) break;
        i = step.onward;
        seating_least_but(s, i, hole, &x);
    }
    for (int m = 0; m < count; m++) s->locked[s->moved[m]] = false;
    while (count > kept) count--, relocate(s, s->moved[count], s->from[count]);
    if (closer >= 0) {
        s->moved[count++] = closer;
        relocate(s, closer, hole);
    }
    return count;
}

/* A ring of those from whom chains are still to be tried. */
struct waiting {
    int head, count;
};

static void wait_for(struct seating *s, struct waiting *waiting, int i) {
    if (s->queued[i]) return;
    int at = waiting->head + waiting->count++;
    s->queue[at < s->n ? at : at - s->n] = i;
    s->queued[i] = true;
}

static void wait_near(struct seating *s, struct waiting *waiting, int i) {
    struct row row = matrix_row(&s->level->comm, i);
    wait_for(s, waiting, i);
    for (int e = 0; e < row.count; e++)
        if (row.weight[e] != 0) wait_for(s, waiting, row_column(row, e));
    *s->rules->work += (uint64_t)row.count;
}

static double mean_talk(const struct matrix *comm) {
    double sum = 0;
    for (int i = 0; i < comm->n; i++) {
        struct row row = matrix_row(comm, i);
        for (int e = 0; e < row.count; e++) sum += row.weight[e];
    }
    return sum / comm->n;
}

/* What a unit of communication costs between two nodes beyond what it costs within one, in the mean. */
static double mean_price(const struct rules *rules) {
    double sum = 0;
    int k = rules->k;
    for (int x = 0; x < k; x++)
        for (int y = 0; y < k; y++) sum += rules->cost[x * k + y] - rules->cost[x * k + x];
    return k > 1 ? sum / k / (k - 1) : 0;
}

void seating_chain(struct seating *s, struct rng *rng) {
    struct waiting waiting = {0, 0};
    const double stray = STRAY * mean_talk(&s->level->comm) * mean_price(s->rules);
    const uint64_t most =
        *s->rules->work + s->rules->allowed / 4; /* of full matrices a few may be all there is time for */
    list_members(s);
    *s->rules->work += matrix_size(&s->level->comm) / 2 + 8 * (uint64_t)s->n;
    rng_shuffle(rng, s->n, s->order);
    for (int q = 0; q < s->n; q++) wait_for(s, &waiting, s->order[q]);
    while (waiting.count && *s->rules->work < most) {
        int i = s->queue[waiting.head];
        waiting.head = waiting.head + 1 < s->n ? waiting.head + 1 : 0;
        waiting.count--;
        s->queued[i] = false;
        double away = seating_least_elsewhere(s, i);
        if (s->low_at[i] < 0 || (s->rules->flat && !s->level->extra && away >= 0))
            continue; /* talks to nobody elsewhere */
        int count = run_chain(s, i, s->low_at[i], stray);
        for (int m = 0; m < count; m++) wait_near(s, &waiting, s->moved[m]);
    }
}
