/* Several 0/1 knapsacks by dynamic programming over capacities, with the chosen items.
 * Usage: knapsack ITEMS SEED (capacity = 40 x ITEMS); prints values, weights and a hash of tables and choices. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define KNAPSACKS 8

struct item {
  int weight, value;
};

static uint32_t draw(uint64_t *state, uint32_t bound) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(((*state >> 32) * bound) >> 32);
}

/* best[c] is the most valuable load of capacity c so far; taken[c] says whether it holds this item. */
static void consider(struct item item, int capacity, const int *restrict best, int *restrict better,
                     uint8_t *restrict taken) {
  for (int c = 0; c < item.weight && c <= capacity; c++) {
    better[c] = best[c];
    taken[c] = 0;
  }
  for (int c = item.weight; c <= capacity; c++) {
    int with = best[c - item.weight] + item.value;
    taken[c] = with > best[c];
    better[c] = with > best[c] ? with : best[c];
  }
}

/* Fills the table item by item; returns the array that holds the best values, one of the two given. */
static int *fill_table(const struct item *item, int items, int capacity, int *best, int *better, uint8_t *taken) {
  for (int c = 0; c <= capacity; c++)
    best[c] = 0;
  for (int i = 0; i < items; i++) {
    consider(item[i], capacity, best, better, taken + (size_t)i * ((size_t)capacity + 1));
    int *kept = best;
    best = better;
    better = kept;
  }
  return best;
}

int main(int argc, char **argv) {
  int items = argc > 1 ? atoi(argv[1]) : 60;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (items < 1 || items > 4000)
    return fprintf(stderr, "usage: knapsack ITEMS SEED, ITEMS from 1 to 4000\n"), 2;
  int capacity = 40 * items;
  size_t row = (size_t)capacity + 1;
  struct item *item = malloc((size_t)items * sizeof *item);
  int *first = malloc(row * sizeof *first), *second = malloc(row * sizeof *second);
  uint8_t *taken = malloc((size_t)items * row);
  if (!item || !first || !second || !taken)
    return fprintf(stderr, "out of memory\n"), 1;
  uint64_t hash = 1469598103934665603ull;
  for (int k = 0; k < KNAPSACKS; k++) {
    for (int i = 0; i < items; i++) {
      int weight = 10 + (int)draw(&state, 190);
      item[i] = (struct item){weight, weight + (int)draw(&state, 60)}; /* heavy ones are worth more: a hard case */
    }
    int *best = fill_table(item, items, capacity, first, second, taken);
    for (int c = 0; c <= capacity; c++)
      hash = (hash ^ (uint64_t)best[c]) * 1099511628211ull;
    int left = capacity, weight = 0;
    for (int i = items; i-- > 0;) {
      if (!taken[(size_t)i * row + (size_t)left])
        continue;
      left -= item[i].weight;
      weight += item[i].weight;
      hash = (hash ^ (uint64_t)i) * 1099511628211ull;
    }
    printf("value %d weight %d of %d\n", best[capacity], weight, capacity);
  }
  printf("%016llx\n", (unsigned long long)hash);
  free(item), free(first), free(second), free(taken);
  return 0;
}
