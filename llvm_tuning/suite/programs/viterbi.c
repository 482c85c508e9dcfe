/* Viterbi decoding of a hidden Markov model with integer costs (scaled negative logarithms).
 * Usage: viterbi OBSERVATIONS SEED; prints the path's cost and a hash of the costs and of the decoded states. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define STATES 48
#define SYMBOLS 16

static int32_t move_cost[STATES][STATES]; /* [to][from] */
static int32_t emit_cost[STATES][SYMBOLS];

static uint32_t draw(uint64_t *state, uint32_t bound) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(((*state >> 32) * bound) >> 32);
}

/* One observation: the cheapest way into every state, and where it came from. */
static void relax(const int32_t *restrict cost, int symbol, int32_t *restrict next, uint8_t *restrict from) {
  for (int to = 0; to < STATES; to++) {
    int32_t cheapest = cost[0] + move_cost[to][0];
    int origin = 0;
    for (int s = 1; s < STATES; s++) {
      int32_t candidate = cost[s] + move_cost[to][s];
      if (candidate < cheapest) {
        cheapest = candidate;
        origin = s;
      }
    }
    next[to] = cheapest + emit_cost[to][symbol];
    from[to] = (uint8_t)origin;
  }
}

int main(int argc, char **argv) {
  int length = argc > 1 ? atoi(argv[1]) : 1000;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (length < 1 || length > 1000000)
    return fprintf(stderr, "usage: viterbi OBSERVATIONS SEED, OBSERVATIONS from 1 to 1000000\n"), 2;
  for (int to = 0; to < STATES; to++) {
    for (int from = 0; from < STATES; from++)
      move_cost[to][from] =
          (to + STATES - from) % STATES < 3 ? (int32_t)draw(&state, 60) : 80 + (int32_t)draw(&state, 150);
    for (int symbol = 0; symbol < SYMBOLS; symbol++)
      emit_cost[to][symbol] = symbol == to % SYMBOLS ? 10 : 30 + (int32_t)draw(&state, 120);
  }
  uint8_t (*from)[STATES] = malloc((size_t)length * sizeof *from);
  if (!from)
    return fprintf(stderr, "out of memory\n"), 1;
  int32_t cost[STATES] = {0}, next[STATES];
  uint64_t hash = 1469598103934665603ull;
  int walked = 0;
  for (int t = 0; t < length; t++) {
    walked = (walked + (int)draw(&state, 3)) % STATES;
    int symbol = draw(&state, 4) == 0 ? (int)draw(&state, SYMBOLS) : walked % SYMBOLS;
    relax(cost, symbol, next, from[t]);
    int32_t floor = next[0];
    for (int s = 1; s < STATES; s++)
      floor = next[s] < floor ? next[s] : floor;
    for (int s = 0; s < STATES; s++) /* costs stay small: only differences matter to the path */
      cost[s] = next[s] - floor;
    hash = (hash ^ (uint64_t)floor) * 1099511628211ull;
    for (int s = 0; s < STATES; s++)
      hash = (hash ^ from[t][s]) * 1099511628211ull;
  }
  int last = 0;
  for (int s = 1; s < STATES; s++)
    if (cost[s] < cost[last])
      last = s;
  int visits[STATES] = {0}, favourite = 0;
  for (int t = length, s = last; t-- > 0;) {
    visits[s]++;
    hash = (hash ^ (uint64_t)s) * 1099511628211ull;
    s = from[t][s];
  }
  for (int s = 1; s < STATES; s++)
    if (visits[s] > visits[favourite])
      favourite = s;
  printf("last %d\nfavourite %d visits %d\n%016llx\n", last, favourite, visits[favourite], (unsigned long long)hash);
  free(from);
  return 0;
}
