/* Finds many words in a text at once with an Aho-Corasick automaton over the letters a to z.
 * Usage: text_search KIB SEED; prints the finds and a hash of the automaton, of every find and of the counts. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LETTERS 26
#define WORDS 120
#define MAX_WORD 8
#define MAX_NODES (WORDS * MAX_WORD + 1)

struct automaton {
  int16_t next[MAX_NODES][LETTERS];
  int16_t fail[MAX_NODES];
  int16_t word[MAX_NODES];    /* the word that ends here; -1: none */
  int16_t shorter[MAX_NODES]; /* the nearest node on the fail path that ends a word; 0: none */
  int nodes;
};

static struct automaton automaton;
static uint64_t hash = 1469598103934665603ull;

static void feed(uint64_t value) { hash = (hash ^ value) * 1099511628211ull; }

static uint32_t draw(uint64_t *state, uint32_t bound) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(((*state >> 32) * bound) >> 32);
}

/* Writes letters of which some are more common than others, as in real text. */
static void write_letters(char *to, size_t count, uint64_t *state) {
  static const char choice[] = "eeeeeettttaaaaooooiiinnnsssshhhrrrddlluuccmmffwwyyppvbgkqjxzetao";
  uint32_t bits = 0;
  for (size_t i = 0; i < count; i++, bits >>= 6) {
    if (i % 4 == 0)
      bits = draw(state, 1u << 24);
    to[i] = choice[bits & 63];
  }
}

static void add_word(struct automaton *a, const char *word, int length, int16_t index) {
  int16_t at = 0;
  for (int i = 0; i < length; i++) {
    int16_t *next = &a->next[at][word[i] - 'a'];
    if (*next == 0) {
      a->word[a->nodes] = -1;
      *next = (int16_t)a->nodes++;
    }
    at = *next;
  }
  a->word[at] = index;
}

/* Makes the tree an automaton: breadth first, missing steps take the step of the failure node. */
static void link_failures(struct automaton *a) {
  int16_t queue[MAX_NODES];
  int first = 0, last = 0;
  for (int c = 0; c < LETTERS; c++)
    if (a->next[0][c])
      queue[last++] = a->next[0][c];
  while (first < last) {
    int16_t node = queue[first++], fail = a->fail[node];
    a->shorter[node] = a->word[fail] >= 0 ? fail : a->shorter[fail];
    for (int c = 0; c < LETTERS; c++) {
      int16_t child = a->next[node][c];
      if (child == 0) {
        a->next[node][c] = a->next[fail][c];
        continue;
      }
      a->fail[child] = a->next[fail][c];
      queue[last++] = child;
    }
  }
}

static uint64_t scan(const struct automaton *a, const char *text, size_t size, uint32_t counts[WORDS]) {
  uint64_t finds = 0;
  int16_t at = 0;
  for (size_t i = 0; i < size; i++) {
    at = a->next[at][text[i] - 'a'];
    for (int16_t node = a->word[at] >= 0 ? at : a->shorter[at]; node; node = a->shorter[node]) {
      counts[a->word[node]]++;
      feed((uint64_t)i << 16 | (uint64_t)node);
      finds++;
    }
  }
  return finds;
}

int main(int argc, char **argv) {
  int kib = argc > 1 ? atoi(argv[1]) : 100;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (kib < 1 || kib > 1 << 20)
    return fprintf(stderr, "usage: text_search KIB SEED, KIB from 1 to 1048576\n"), 2;
  size_t size = (size_t)kib * 1024;
  char *text = malloc(size), word[MAX_WORD];
  if (!text)
    return fprintf(stderr, "out of memory\n"), 1;
  automaton.nodes = 1;
  automaton.word[0] = -1;
  for (int16_t w = 0; w < WORDS; w++) {
    int length = 2 + (int)draw(&state, MAX_WORD - 1);
    write_letters(word, (size_t)length, &state);
    add_word(&automaton, word, length, w);
  }
  write_letters(text, size, &state);
  link_failures(&automaton);
  uint32_t counts[WORDS] = {0}, best = 0;
  uint64_t finds = scan(&automaton, text, size, counts);
  for (int n = 0; n < automaton.nodes; n++)
    feed((uint64_t)(uint16_t)automaton.fail[n] << 16 | (uint16_t)automaton.word[n]);
  for (int w = 0; w < WORDS; w++) {
    feed(counts[w]);
    if (counts[w] > best)
      best = counts[w];
  }
  printf("nodes %d\nfinds %llu\nmost frequent %u\n%016llx\n", automaton.nodes, (unsigned long long)finds, best,
         (unsigned long long)hash);
  free(text);
  return 0;
}
