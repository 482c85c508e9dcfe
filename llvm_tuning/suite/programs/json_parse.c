/* Recursive-descent JSON parser: writes a random document, parses it into a tree of nodes and walks the tree.
 * Usage: json_parse RECORDS SEED; prints counts and sums and a hash of every node. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum kind { NUL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT, KINDS };

struct node {
  enum kind kind;
  int32_t next; /* sibling; -1: none */
  int32_t child;
  uint32_t key;  /* hash of the name within an object */
  double number; /* value, or the hash of a string's bytes */
};

struct parser {
  const char *at;
  struct node *nodes;
  int32_t used;
};

static uint64_t hash = 1469598103934665603ull;

static void feed(uint64_t value) { hash = (hash ^ value) * 1099511628211ull; }

static void skip_space(struct parser *p) {
  while (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r')
    p->at++;
}

static void expect(struct parser *p, char c) {
  skip_space(p);
  if (*p->at++ != c) {
    fprintf(stderr, "json_parse: expected %c\n", c);
    exit(1);
  }
}

static uint32_t parse_string(struct parser *p) {
  uint32_t sum = 2166136261u;
  expect(p, '"');
  for (; *p->at != '"'; p->at++) {
    if (*p->at == '\\')
      p->at++;
    sum = (sum ^ (uint8_t)*p->at) * 16777619u;
  }
  p->at++;
  return sum;
}

static double parse_number(struct parser *p) {
  int negative = *p->at == '-';
  int64_t digits = 0, scale = 1;
  for (p->at += negative; *p->at >= '0' && *p->at <= '9'; p->at++)
    digits = digits * 10 + (*p->at - '0');
  if (*p->at == '.')
    for (p->at++; *p->at >= '0' && *p->at <= '9'; p->at++, scale *= 10)
      digits = digits * 10 + (*p->at - '0');
  double value = (double)digits / (double)scale;
  return negative ? -value : value;
}

static int32_t parse_value(struct parser *p);

static int32_t parse_members(struct parser *p, char close, int named) {
  int32_t first = -1, last = -1;
  p->at++;
  for (skip_space(p); *p->at != close; skip_space(p)) {
    uint32_t key = 0;
    if (last >= 0)
      expect(p, ',');
    if (named) {
      key = parse_string(p);
      expect(p, ':');
    }
    int32_t member = parse_value(p);
    p->nodes[member].key = key;
    if (last >= 0)
      p->nodes[last].next = member;
    else
      first = member;
    last = member;
  }
  p->at++;
  return first;
}

static int32_t parse_value(struct parser *p) {
  int32_t index = p->used++;
  struct node node = {NUL, -1, -1, 0, 0.0};
  skip_space(p);
  if (*p->at == '{' || *p->at == '[') {
    node.kind = *p->at == '{' ? OBJECT : ARRAY;
    node.child = parse_members(p, node.kind == OBJECT ? '}' : ']', node.kind == OBJECT);
  } else if (*p->at == '"') {
    node.kind = STRING;
    node.number = parse_string(p);
  } else if (*p->at == 't' || *p->at == 'f') {
    node.kind = BOOLEAN;
    node.number = *p->at == 't';
    p->at += *p->at == 't' ? 4 : 5;
  } else if (*p->at == 'n') {
    p->at += 4;
  } else {
    node.kind = NUMBER;
    node.number = parse_number(p);
  }
  p->nodes[index] = node;
  return index;
}

/* Feeds the hash in document order; adds up numbers, and nodes by kind. */
static void walk(const struct node *nodes, int32_t at, int depth, int counts[KINDS], double *sum) {
  for (; at >= 0; at = nodes[at].next) {
    const struct node *node = &nodes[at];
    counts[node->kind]++;
    if (node->kind == NUMBER)
      *sum += node->number;
    feed((uint64_t)node->key << 16 ^ (uint64_t)node->kind << 8 ^ (uint64_t)depth);
    feed((uint64_t)(int64_t)(node->number * 1000.0));
    walk(nodes, node->child, depth + 1, counts, sum);
  }
}

static char *write_text(char *to, const char *text) {
  while (*text)
    *to++ = *text++;
  return to;
}

static char *write_number(char *to, uint32_t number) {
  if (number >= 10)
    to = write_number(to, number / 10);
  *to++ = (char)('0' + number % 10);
  return to;
}

static uint32_t draw(uint64_t *state, uint32_t bound) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)(((*state >> 32) * bound) >> 32);
}

static char *write_record(char *to, uint64_t *state) {
  static const char *words[] = {"red \\\"green\\\"", "blue\\\\violet", "yellow", "black and white", "", "grey"};
  to = write_number(write_text(to, "  {\"id\": "), draw(state, 1000000));
  to = write_text(write_text(to, ", \"colour\": \""), words[draw(state, 6)]);
  to = write_text(write_text(to, "\", \"sold\": "), draw(state, 2) ? "true" : "false");
  to = write_number(write_text(to, ", \"price\": -"), draw(state, 5000));
  to = write_number(write_text(to, "."), draw(state, 100));
  to = write_text(to, ", \"owner\": null, \"sizes\": [");
  for (uint32_t k = draw(state, 6); k > 0; k--)
    to = write_text(write_number(to, draw(state, 300)), k > 1 ? ", " : "");
  return write_text(to, "], \"tags\": {\"a\": [], \"b\": {}}}");
}

int main(int argc, char **argv) {
  int records = argc > 1 ? atoi(argv[1]) : 200;
  uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  if (records < 1 || records > 1000000)
    return fprintf(stderr, "usage: json_parse RECORDS SEED, RECORDS from 1 to 1000000\n"), 2;
  char *text = malloc((size_t)records * 256 + 8), *end = write_text(text, "[\n");
  struct node *nodes = malloc(((size_t)records * 20 + 2) * sizeof *nodes);
  if (!text || !nodes)
    return fprintf(stderr, "out of memory\n"), 1;
  for (int r = 0; r < records; r++)
    end = write_text(write_record(end, &state), r + 1 < records ? ",\n" : "\n");
  *write_text(end, "]") = '\0';
  struct parser parser = {text, nodes, 0};
  int counts[KINDS] = {0};
  double sum = 0.0;
  int32_t root = parse_value(&parser);
  walk(nodes, root, 0, counts, &sum);
  printf("bytes %td nodes %d\nstrings %d numbers %d objects %d\nsum %.3f\n%016llx\n", parser.at - text, parser.used,
         counts[STRING], counts[NUMBER], counts[OBJECT], sum, (unsigned long long)hash);
  free(text), free(nodes);
  return 0;
}
