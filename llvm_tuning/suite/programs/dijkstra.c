/* Shortest paths from several sources in a sparse directed graph, by Dijkstra's method with a binary heap.
 * Usage: dijkstra VERTICES SEED; prints per source how far the graph reaches, and a hash of distances and parents. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define DEGREE 6
#define SOURCES 3
#define FAR UINT32_MAX

struct edge {
  uint32_t to, length;
};

struct entry {
  uint32_t distance, vertex;
};

struct heap {
  struct entry *entries;
  size_t count;
};

static uint32_t draw(uint64_t *state, uint32_t bound) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(((*state >> 32) * bound) >> 32);
}

static void push(struct heap *heap, struct entry entry) {
  size_t at = heap->count++;
  while (at > 0 && heap->entries[(at - 1) / 2].distance > entry.distance) {
    heap->entries[at] = heap->entries[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap->entries[at] = entry;
}

static struct entry pop(struct heap *heap) {
  struct entry top = heap->entries[0], last = heap->entries[--heap->count];
  size_t at = 0;
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= heap->count)
      break;
    if (child + 1 < heap->count && heap->entries[child + 1].distance < heap->entries[child].distance)
      child++;
    if (heap->entries[child].distance >= last.distance)
      break;
    heap->entries[at] = heap->entries[child];
    at = child;
  }
  heap->entries[at] = last;
  return top;
}

/* Vertex v has the edges [v * DEGREE, (v + 1) * DEGREE). The heap has room for one entry per edge and one more. */
static void shortest_paths(const struct edge *edges, uint32_t source, struct heap *heap, uint32_t *distance,
                           uint32_t *parent) {
  distance[source] = 0;
  parent[source] = source;
  push(heap, (struct entry){0, source});
  while (heap->count > 0) {
    struct entry nearest = pop(heap);
    if (nearest.distance > distance[nearest.vertex])
      continue; /* a shorter way was found after this entry was pushed */
    const struct edge *out = edges + (size_t)nearest.vertex * DEGREE;
    for (int k = 0; k < DEGREE; k++) {
      uint32_t reached = nearest.distance + out[k].length;
      if (reached < distance[out[k].to]) {
        distance[out[k].to] = reached;
        parent[out[k].to] = nearest.vertex;
        push(heap, (struct entry){reached, out[k].to});
      }
    }
  }
}

int main(int argc, char **argv) {
  int size = argc > 1 ? atoi(argv[1]) : 2000;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (size < 2 || size > 4000000)
    return fprintf(stderr, "usage: dijkstra VERTICES SEED, VERTICES from 2 to 4000000\n"), 2;
  uint32_t vertices = (uint32_t)size;
  struct edge *edges = malloc((size_t)vertices * DEGREE * sizeof *edges);
  uint32_t *distance = malloc(vertices * sizeof *distance), *parent = malloc(vertices * sizeof *parent);
  struct heap heap = {malloc(((size_t)vertices * DEGREE + 1) * sizeof *heap.entries), 0};
  if (!edges || !distance || !parent || !heap.entries)
    return fprintf(stderr, "out of memory\n"), 1;
  for (size_t i = 0; i < (size_t)vertices * DEGREE; i++)
    edges[i] = (struct edge){draw(&state, vertices), 1 + draw(&state, 1000)};
  uint64_t hash = 1469598103934665603ull;
  for (int s = 0; s < SOURCES; s++) {
    uint32_t source = draw(&state, vertices), reached = 0, farthest = 0;
    for (uint32_t v = 0; v < vertices; v++)
      distance[v] = parent[v] = FAR;
    shortest_paths(edges, source, &heap, distance, parent);
    for (uint32_t v = 0; v < vertices; v++) {
      hash = (hash ^ (((uint64_t)parent[v] << 32) | distance[v])) * 1099511628211ull;
      if (distance[v] == FAR)
        continue;
      reached++;
      if (distance[v] > farthest)
        farthest = distance[v];
    }
    printf("source %u reached %u farthest %u\n", source, reached, farthest);
  }
  printf("%016llx\n", (unsigned long long)hash);
  free(edges), free(distance), free(parent), free(heap.entries);
  return 0;
}
