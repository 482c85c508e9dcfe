/* Monte Carlo value of a barrier option on a binomial price walk, with the xoshiro256** generator.
 * Usage: monte_carlo PATHS SEED; prints mean pay-off and knock-outs and a hash of pay-offs and end prices. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 64
#define BINS 64

static uint64_t state[4];
static uint64_t hash = 1469598103934665603ull;

static uint64_t rotate(uint64_t x, int n) { return (x << n) | (x >> (64 - n)); }

static uint64_t next_random(void) {
  uint64_t result = rotate(state[1] * 5, 7) * 9, shifted = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= shifted;
  state[3] = rotate(state[3], 45);
  return result;
}

/* Fills the four words from one seed by splitmix64. */
static void seed_random(uint64_t seed) {
  for (int i = 0; i < 4; i++) {
    uint64_t z = seed += 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    state[i] = z ^ (z >> 31);
  }
}

static void feed(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  hash = (hash ^ bits) * 1099511628211ull;
}

struct option {
  double start, strike, barrier, up, down;
};

/* One price path; every random bit is one step. Returns the pay-off at the end, or a negative number if knocked out. */
static double walk(const struct option *option, double *end) {
  double price = option->start;
  uint64_t bits = next_random();
  int alive = 1;
  for (int s = 0; s < STEPS; s++, bits >>= 1) {
    price *= bits & 1 ? option->up : option->down;
    alive &= price > option->barrier;
  }
  *end = price;
  if (!alive)
    return -1.0;
  return price > option->strike ? price - option->strike : 0.0;
}

int main(int argc, char **argv) {
  int paths = argc > 1 ? atoi(argv[1]) : 10000;
  if (paths < 1)
    return fprintf(stderr, "usage: monte_carlo PATHS SEED, PATHS from 1\n"), 2;
  seed_random(argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
  const struct option option = {100.0, 105.0, 85.0, 1.0125, 1.0 / 1.0125};
  double sum = 0.0, squares = 0.0, end = 0.0;
  uint32_t histogram[BINS] = {0};
  int knocked_out = 0;
  for (int p = 0; p < paths; p++) {
    double payoff = walk(&option, &end);
    feed(payoff);
    int bin = (int)(end / 4.0);
    histogram[bin < BINS ? bin : BINS - 1]++;
    if (payoff < 0.0) {
      knocked_out++;
      continue;
    }
    sum += payoff;
    squares += payoff * payoff;
  }
  for (int b = 0; b < BINS; b++)
    hash = (hash ^ histogram[b]) * 1099511628211ull;
  double mean = sum / paths;
  feed(mean);
  printf("mean %.9f\nvariance %.6f\nknocked out %d of %d\n%016llx\n", mean, squares / paths - mean * mean, knocked_out,
         paths, (unsigned long long)hash);
  return 0;
}
