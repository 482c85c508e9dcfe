/* LZ77 with hash chains: compresses a synthetic log, expands it again and compares.
 * Usage: lz77 KIB SEED; prints sizes, matches and a hash of the compressed and of the expanded bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 32768
#define MIN_MATCH 4
#define MAX_MATCH 255
#define CHAIN 24
#define HASH_BITS 14

static int32_t heads[1 << HASH_BITS];
static int32_t links[WINDOW];

static uint32_t draw(uint64_t *state, uint32_t bound) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(((*state >> 32) * bound) >> 32);
}

static uint8_t *write_text(uint8_t *to, const char *text) {
  while (*text)
    *to++ = (uint8_t)*text++;
  return to;
}

static uint8_t *write_number(uint8_t *to, uint32_t number) {
  if (number >= 10)
    to = write_number(to, number / 10);
  *to++ = (uint8_t)('0' + number % 10);
  return to;
}

/* Fills all but the last few bytes with lines; returns how many bytes it wrote. */
static size_t write_log(uint8_t *text, size_t size, uint64_t *state) {
  static const char *verbs[] = {" opened", " closed", " read", " wrote", " renamed", " deleted"};
  static const char *users[] = {" user=alice", " user=bob", " user=carol", " user=dave", " user=eve"};
  uint8_t *to = text;
  for (uint32_t clock = 1000; text + size - to > 100; clock += 1 + draw(state, 30)) {
    to = write_text(write_number(to, clock), users[draw(state, 5)]);
    to = write_text(write_text(to, verbs[draw(state, 6)]), " /data/");
    to = write_text(write_number(to, draw(state, 40)), "/file");
    to = write_text(write_number(to, draw(state, 400)), ".txt bytes=");
    to = write_text(write_number(to, draw(state, 100000)), "\n");
  }
  return (size_t)(to - text);
}

static uint32_t key_at(const uint8_t *p) {
  uint32_t word = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
  return word * 2654435761u >> (32 - HASH_BITS);
}

/* The longest earlier match of in[at...]; its length is 0 when none is long enough. */
static int longest_match(const uint8_t *in, int32_t at, int32_t size, int32_t *distance) {
  int best = MIN_MATCH - 1, limit = size - at < MAX_MATCH ? size - at : MAX_MATCH;
  int32_t candidate = heads[key_at(in + at)];
  for (int tries = 0; tries < CHAIN && candidate >= 0 && at - candidate < WINDOW; tries++) {
    int length = 0;
    while (length < limit && in[candidate + length] == in[at + length])
      length++;
    if (length > best) {
      best = length;
      *distance = at - candidate;
      if (length == limit)
        break;
    }
    candidate = links[candidate % WINDOW];
  }
  return best >= MIN_MATCH ? best : 0;
}

/* Tokens: 0 and a literal, or a length (4 to 255) and a distance in two bytes. Returns the compressed size. */
static size_t compress(const uint8_t *in, int32_t size, uint8_t *out, int *matches) {
  size_t used = 0;
  memset(heads, -1, sizeof heads);
  for (int32_t at = 0; at < size;) {
    int32_t distance = 0;
    int length = size - at >= MIN_MATCH ? longest_match(in, at, size, &distance) : 0;
    out[used++] = (uint8_t)length;
    if (length == 0) {
      out[used++] = in[at];
    } else {
      out[used++] = (uint8_t)(distance & 255);
      out[used++] = (uint8_t)(distance >> 8);
      ++*matches;
    }
    for (int32_t end = at + (length ? length : 1); at < end; at++) {
      if (size - at < MIN_MATCH)
        continue;
      uint32_t key = key_at(in + at);
      links[at % WINDOW] = heads[key];
      heads[key] = at;
    }
  }
  return used;
}

static size_t expand(const uint8_t *in, size_t size, uint8_t *out) {
  size_t used = 0;
  for (size_t at = 0; at < size;) {
    int length = in[at++];
    if (length == 0) {
      out[used++] = in[at++];
      continue;
    }
    size_t distance = in[at] | (size_t)in[at + 1] << 8;
    at += 2;
    for (int i = 0; i < length; i++, used++)
      out[used] = out[used - distance];
  }
  return used;
}

int main(int argc, char **argv) {
  int kib = argc > 1 ? atoi(argv[1]) : 16;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (kib < 1 || kib > 65536)
    return fprintf(stderr, "usage: lz77 KIB SEED, KIB from 1 to 65536\n"), 2;
  size_t capacity = (size_t)kib * 1024;
  uint8_t *text = malloc(capacity), *packed = malloc(2 * capacity), *back = calloc(capacity, 1);
  if (!text || !packed || !back)
    return fprintf(stderr, "out of memory\n"), 1;
  size_t size = write_log(text, capacity, &state);
  int matches = 0;
  size_t packed_size = compress(text, (int32_t)size, packed, &matches);
  size_t back_size = expand(packed, packed_size, back);
  uint64_t hash = 1469598103934665603ull;
  for (size_t i = 0; i < packed_size; i++)
    hash = (hash ^ packed[i]) * 1099511628211ull;
  for (size_t i = 0; i < back_size; i++)
    hash = (hash ^ back[i]) * 1099511628211ull;
  printf("text %zu packed %zu matches %d\n%s\n%016llx\n", size, packed_size, matches,
         back_size == size && memcmp(text, back, size) == 0 ? "intact" : "damaged", (unsigned long long)hash);
  free(text), free(packed), free(back);
  return 0;
}
