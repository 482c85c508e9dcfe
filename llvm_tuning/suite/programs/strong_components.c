/* Strongly connected components of a random directed graph by Tarjan's method with an explicit stack.
 * Usage: strong_components VERTICES SEED; prints how many, the largest, and a hash of every vertex's component. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NONE UINT32_MAX

struct graph {
  uint32_t vertices;
  uint32_t *starts; /* edges of v: targets[starts[v]] to targets[starts[v + 1]] */
  uint32_t *targets;
};

struct search {
  uint32_t *order, *low, *component, *next_edge, *open, *path;
};

static uint32_t draw(uint64_t *state, uint32_t bound) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(((*state >> 32) * bound) >> 32);
}

static uint32_t *claim(size_t count) {
  uint32_t *memory = calloc(count, sizeof *memory);
  if (!memory) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return memory;
}

/* Out-degrees are 0 to 3; a quarter of the edges stay near, so that components of many sizes arise. */
static struct graph random_graph(uint32_t vertices, uint64_t *state) {
  struct graph g = {vertices, claim((size_t)vertices + 1), claim((size_t)vertices * 3)};
  uint32_t used = 0;
  for (uint32_t v = 0; v < vertices; v++) {
    g.starts[v] = used;
    uint32_t degree = draw(state, 4);
    for (uint32_t k = 0; k < degree; k++)
      g.targets[used++] = draw(state, 4) == 0 ? (v + 1 + draw(state, 8)) % vertices : draw(state, vertices);
  }
  g.starts[vertices] = used;
  return g;
}

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Fills s->component, numbered from 0 in the order of completion, and returns how many there are. */
static uint32_t find_components(const struct graph *g, struct search *s) {
  uint32_t visited = 0, components = 0, opened = 0;
  for (uint32_t v = 0; v < g->vertices; v++)
    s->order[v] = s->component[v] = NONE;
  for (uint32_t root = 0; root < g->vertices; root++) {
    if (s->order[root] != NONE)
      continue;
    uint32_t depth = 0, entering = root;
    for (;;) {
      if (entering != NONE) {
        s->order[entering] = s->low[entering] = visited++;
        s->next_edge[entering] = g->starts[entering];
        s->open[opened++] = entering;
        s->path[depth++] = entering;
        entering = NONE;
      }
      uint32_t v = s->path[depth - 1];
      if (s->next_edge[v] < g->starts[v + 1]) {
        uint32_t w = g->targets[s->next_edge[v]++];
        if (s->order[w] == NONE)
          entering = w;
        else if (s->component[w] == NONE)
          s->low[v] = smaller(s->low[v], s->order[w]);
        continue;
      }
      if (s->low[v] == s->order[v]) {
        uint32_t member;
        do {
          member = s->open[--opened];
          s->component[member] = components;
        } while (member != v);
        components++;
      }
      if (--depth == 0)
        break;
      uint32_t caller = s->path[depth - 1];
      s->low[caller] = smaller(s->low[caller], s->low[v]);
    }
  }
  return components;
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 5000;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (size < 1 || size > 10000000)
    return fprintf(stderr, "usage: strong_components VERTICES SEED, VERTICES from 1 to 10000000\n"), 2;
  uint32_t n = (uint32_t)size;
  struct graph g = random_graph(n, &state);
  struct search s = {claim(n), claim(n), claim(n), claim(n), claim(n), claim(n)};
  uint32_t components = find_components(&g, &s);
  uint32_t *sizes = claim((size_t)components + 1), largest = 0;
  uint64_t hash = 1469598103934665603ull;
  for (uint32_t v = 0; v < n; v++) {
    hash = (hash ^ (((uint64_t)s.low[v] << 32) | s.component[v])) * 1099511628211ull;
    if (s.component[v] < components && ++sizes[s.component[v]] > largest)
      largest = sizes[s.component[v]];
  }
  printf("edges %u\ncomponents %u\nlargest %u\n%016llx\n", g.starts[n], components, largest, (unsigned long long)hash);
  free(g.starts), free(g.targets), free(sizes);
  free(s.order), free(s.low), free(s.component), free(s.next_edge), free(s.open), free(s.path);
  return 0;
}
