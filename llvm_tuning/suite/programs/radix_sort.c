/* Stable least-significant-digit radix sort of 64-bit keys that carry a payload.
 * Usage: radix_sort COUNT SEED; prints the extremes and a hash of the sorted records. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGIT_BITS 8
#define BUCKETS (1 << DIGIT_BITS)
#define PASSES (64 / DIGIT_BITS)

struct record {
  uint64_t key;
  uint32_t payload;
};

/* Counts the digits of all passes in one read of the records. */
static void count_digits(const struct record *records, size_t n, size_t counts[PASSES][BUCKETS]) {
  memset(counts, 0, sizeof(size_t[PASSES][BUCKETS]));
  for (size_t i = 0; i < n; i++)
    for (int pass = 0; pass < PASSES; pass++)
      counts[pass][(records[i].key >> (pass * DIGIT_BITS)) % BUCKETS]++;
}

static void scatter(const struct record *from, struct record *to, size_t n, int pass, const size_t *counts) {
  size_t offsets[BUCKETS], sum = 0;
  for (int b = 0; b < BUCKETS; b++) {
    offsets[b] = sum;
    sum += counts[b];
  }
  for (size_t i = 0; i < n; i++)
    to[offsets[(from[i].key >> (pass * DIGIT_BITS)) % BUCKETS]++] = from[i];
}

/* Sorts records; spare has the same size. Returns the number of passes that moved anything. */
static int radix_sort(struct record *records, struct record *spare, size_t n) {
  static size_t counts[PASSES][BUCKETS];
  struct record *from = records, *to = spare;
  int moved = 0;
  count_digits(records, n, counts);
  for (int pass = 0; pass < PASSES; pass++) {
    if (counts[pass][(from[0].key >> (pass * DIGIT_BITS)) % BUCKETS] == n)
      continue; /* all keys share this digit */
    scatter(from, to, n, pass, counts[pass]);
    struct record *kept = from;
    from = to;
    to = kept;
    moved++;
  }
  if (from != records)
    memcpy(records, from, n * sizeof *records);
  return moved;
}

int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : 5000;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (count < 1 || count > 20000000)
    return fprintf(stderr, "usage: radix_sort COUNT SEED, COUNT from 1 to 20000000\n"), 2;
  size_t n = (size_t)count;
  struct record *records = malloc(n * sizeof *records), *spare = malloc(n * sizeof *spare);
  if (!records || !spare)
    return fprintf(stderr, "out of memory\n"), 1;
  for (size_t i = 0; i < n; i++) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    records[i] = (struct record){(state >> 20) * (1 + (state >> 62)), (uint32_t)i}; /* 46 bits */
  }
  int moved = radix_sort(records, spare, n);
  uint64_t hash = 1469598103934665603ull;
  for (size_t i = 0; i < n; i++)
    hash = ((hash ^ records[i].key) * 1099511628211ull ^ records[i].payload) * 1099511628211ull;
  printf("passes %d\nleast %llu\ngreatest %llu\n%016llx\n", moved, (unsigned long long)records[0].key,
         (unsigned long long)records[n - 1].key, (unsigned long long)hash);
  free(records), free(spare);
  return 0;
}
