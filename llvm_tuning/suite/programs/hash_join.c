/* A database join and grouping: an open-addressing hash table over customers, probed by orders.
 * Usage: hash_join CUSTOMERS SEED (6 orders each); prints matches and totals and a hash of the table and groups. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ORDERS_EACH 6
#define REGIONS 64

struct slot {
  uint64_t key; /* 0: empty */
  uint32_t region;
  uint32_t orders;
};

struct order {
  uint64_t customer;
  uint32_t amount;
};

struct table {
  struct slot *slots;
  uint64_t mask;
};

static uint64_t draw(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * 2685821657736338717ull;
}

static uint64_t scramble(uint64_t key) {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccdull;
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53ull;
  return key ^ (key >> 33);
}

/* Returns the slot of the key, or the empty one where it belongs. */
static struct slot *find(const struct table *table, uint64_t key) {
  uint64_t at = scramble(key) & table->mask;
  while (table->slots[at].key != 0 && table->slots[at].key != key)
    at = (at + 1) & table->mask;
  return &table->slots[at];
}

static uint32_t build(struct table *table, const uint64_t *keys, uint32_t count) {
  uint32_t distinct = 0;
  for (uint32_t i = 0; i < count; i++) {
    struct slot *slot = find(table, keys[i]);
    distinct += slot->key == 0;
    *slot = (struct slot){keys[i], (uint32_t)(scramble(keys[i] + i) % REGIONS), 0};
  }
  return distinct;
}

/* Adds every order with a known customer to its region; returns how many there were. */
static uint32_t probe(struct table *table, const struct order *orders, size_t count, uint64_t totals[REGIONS]) {
  uint32_t matches = 0;
  for (size_t i = 0; i < count; i++) {
    struct slot *slot = find(table, orders[i].customer);
    if (slot->key == 0)
      continue;
    slot->orders++;
    totals[slot->region] += orders[i].amount;
    matches++;
  }
  return matches;
}

int main(int argc, char **argv) {
  int customers = argc > 1 ? atoi(argv[1]) : 2000;
  uint64_t state = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1) * 2 + 1; /* xorshift needs a state that is not 0 */
  if (customers < 1 || customers > 10000000)
    return fprintf(stderr, "usage: hash_join CUSTOMERS SEED, CUSTOMERS from 1 to 10000000\n"), 2;
  uint32_t count = (uint32_t)customers;
  uint64_t capacity = 16;
  while (capacity < 2ull * count)
    capacity *= 2;
  struct table table = {calloc(capacity, sizeof(struct slot)), capacity - 1};
  uint64_t *keys = malloc(count * sizeof *keys), totals[REGIONS] = {0};
  size_t order_count = (size_t)count * ORDERS_EACH;
  struct order *orders = malloc(order_count * sizeof *orders);
  if (!table.slots || !keys || !orders)
    return fprintf(stderr, "out of memory\n"), 1;
  for (uint32_t i = 0; i < count; i++)
    keys[i] = 1 + draw(&state) % (4ull * count);
  for (size_t i = 0; i < order_count; i++)
    orders[i] = (struct order){1 + draw(&state) % (4ull * count), (uint32_t)(draw(&state) % 10000)};
  uint32_t distinct = build(&table, keys, count);
  uint32_t matches = probe(&table, orders, order_count, totals);
  uint64_t hash = 1469598103934665603ull, sum = 0;
  for (int r = 0; r < REGIONS; r++) {
    hash = (hash ^ totals[r]) * 1099511628211ull;
    sum += totals[r];
  }
  for (uint64_t s = 0; s < capacity; s++)
    if (table.slots[s].key)
      hash = ((hash ^ table.slots[s].key) * 1099511628211ull ^
              ((uint64_t)table.slots[s].region << 32 | table.slots[s].orders)) *
             1099511628211ull;
  printf("customers %u\nmatches %u of %zu\ntotal %llu\n%016llx\n", distinct, matches, order_count,
         (unsigned long long)sum, (unsigned long long)hash);
  free(table.slots), free(keys), free(orders);
  return 0;
}
