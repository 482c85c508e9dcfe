// An ordered map template (a treap in an arena) under a mixed load of insertions, removals, look-ups and range sums.
// Usage: ordered_map OPERATIONS SEED; prints sizes and height and a hash of every answer and of the final contents.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

template <typename Key, typename Value, typename Less = std::less<Key>> class OrderedMap {
public:
  std::size_t size() const { return size_; }
  int height() const { return height_below(root_); }

  // Sets the key's value; returns true if the key is new.
  bool insert(const Key &key, const Value &value) {
    if (const Index known = locate(key); known != none) {
      nodes_[known].value = value;
      return false;
    }
    priority_ = priority_ * 1664525u + 1013904223u;
    nodes_.push_back({key, value, priority_, none, none});
    Index left, right;
    split(root_, key, left, right);
    root_ = join(join(left, static_cast<Index>(nodes_.size() - 1)), right);
    size_++;
    return true;
  }

  bool erase(const Key &key) {
    Index *at = &root_;
    while (*at != none) {
      Node &node = nodes_[*at];
      if (less_(key, node.key)) {
        at = &node.left;
      } else if (less_(node.key, key)) {
        at = &node.right;
      } else {
        *at = join(node.left, node.right);
        size_--;
        return true;
      }
    }
    return false;
  }

  const Value *find(const Key &key) const {
    const Index at = locate(key);
    return at == none ? nullptr : &nodes_[at].value;
  }

  // Calls visit(key, value) in order for all keys in [low, high).
  template <typename Visit> void visit_range(const Key &low, const Key &high, Visit visit) const {
    visit_below(root_, low, high, visit);
  }

private:
  using Index = std::uint32_t;
  static constexpr Index none = UINT32_MAX;

  struct Node {
    Key key;
    Value value;
    std::uint32_t priority; // never less than a child's
    Index left, right;
  };

  Index locate(const Key &key) const {
    Index at = root_;
    while (at != none) {
      const Node &node = nodes_[at];
      if (less_(key, node.key))
        at = node.left;
      else if (less_(node.key, key))
        at = node.right;
      else
        break;
    }
    return at;
  }

  // Takes a tree apart: keys below `key` go left, the others right.
  void split(Index at, const Key &key, Index &left, Index &right) {
    if (at == none) {
      left = right = none;
    } else if (less_(nodes_[at].key, key)) {
      left = at;
      split(nodes_[at].right, key, nodes_[at].right, right);
    } else {
      right = at;
      split(nodes_[at].left, key, left, nodes_[at].left);
    }
  }

  // One tree of two; all keys of the left one are the smaller ones.
  Index join(Index left, Index right) {
    if (left == none || right == none)
      return left == none ? right : left;
    if (nodes_[left].priority > nodes_[right].priority) {
      nodes_[left].right = join(nodes_[left].right, right);
      return left;
    }
    nodes_[right].left = join(left, nodes_[right].left);
    return right;
  }

  template <typename Visit> void visit_below(Index at, const Key &low, const Key &high, Visit &visit) const {
    if (at == none)
      return;
    const Node &node = nodes_[at];
    if (less_(low, node.key))
      visit_below(node.left, low, high, visit);
    if (!less_(node.key, low) && less_(node.key, high))
      visit(node.key, node.value);
    if (less_(node.key, high))
      visit_below(node.right, low, high, visit);
  }

  int height_below(Index at) const {
    return at == none ? 0 : 1 + std::max(height_below(nodes_[at].left), height_below(nodes_[at].right));
  }

  std::vector<Node> nodes_; // a removed key's place is not used again
  Index root_ = none;
  std::size_t size_ = 0;
  std::uint32_t priority_ = 12345;
  Less less_;
};

} // namespace

int main(int argc, char **argv) {
  const int operations = argc > 1 ? std::atoi(argv[1]) : 5000;
  std::uint64_t state = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  if (operations < 1) {
    std::fprintf(stderr, "usage: ordered_map OPERATIONS SEED, OPERATIONS from 1\n");
    return 2;
  }
  const auto draw = [&state](std::uint32_t bound) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::uint32_t>(((state >> 32) * bound) >> 32);
  };
  std::uint64_t hash = 1469598103934665603ull;
  const auto feed = [&hash](std::uint64_t value) { hash = (hash ^ value) * 1099511628211ull; };
  OrderedMap<std::uint32_t, std::uint64_t> map;
  const auto keys = static_cast<std::uint32_t>(operations);
  int added = 0, removed = 0, found = 0;
  for (int i = 0; i < operations; i++) {
    const std::uint32_t action = draw(20), key = draw(keys);
    if (action < 10) {
      added += map.insert(key, hash ^ key);
    } else if (action < 14) {
      removed += map.erase(key);
    } else if (action < 19) {
      const std::uint64_t *value = map.find(key);
      found += value != nullptr;
      feed(value ? *value : 0);
    } else {
      std::uint64_t sum = 0;
      map.visit_range(key, key + 100, [&sum](std::uint32_t k, std::uint64_t value) { sum = sum * 3 + value + k; });
      feed(sum);
    }
    feed(map.size());
  }
  map.visit_range(0, keys, [&feed](std::uint32_t key, std::uint64_t value) {
    feed(key);
    feed(value);
  });
  std::printf("added %d removed %d found %d\nsize %zu height %d\n%016llx\n", added, removed, found, map.size(),
              map.height(), static_cast<unsigned long long>(hash));
}
