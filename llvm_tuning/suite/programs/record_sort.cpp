// Sorts and groups records by several keys with the standard library's algorithms and comparator objects.
// Usage: record_sort COUNT SEED; prints some records and a hash of every order and of all query answers.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Person {
  std::string name;
  std::uint32_t id;
  std::uint32_t city;
  std::int32_t balance;
};

class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint32_t below(std::uint32_t bound) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::uint32_t>(((state_ >> 32) * bound) >> 32);
  }

private:
  std::uint64_t state_;
};

class Hash {
public:
  void feed(std::uint64_t value) { value_ = (value_ ^ value) * 1099511628211ull; }
  std::uint64_t value() const { return value_; }

private:
  std::uint64_t value_ = 1469598103934665603ull;
};

// Orders by one key and, where that ties, by the identity, so that the order is total.
template <typename Key> class By {
public:
  explicit By(Key key) : key_(key) {}
  bool operator()(const Person &a, const Person &b) const {
    const auto &x = key_(a);
    const auto &y = key_(b);
    return x < y || (!(y < x) && a.id < b.id);
  }

private:
  Key key_;
};

template <typename Key> void sort_by(std::vector<Person> &people, Key key) {
  std::sort(people.begin(), people.end(), By<Key>(key));
}

std::vector<Person> make_people(std::size_t count, Random &random) {
  static const std::array<const char *, 12> syllables = {"an",  "bel", "cor", "da", "el",  "fi",
                                                         "gro", "ha",  "il",  "jo", "kar", "lu"};
  std::vector<Person> people;
  people.reserve(count);
  for (std::size_t i = 0; i < count; i++) {
    std::string name;
    for (std::uint32_t k = 2 + random.below(4); k > 0; k--)
      name += syllables[random.below(static_cast<std::uint32_t>(syllables.size()))];
    people.push_back({name, static_cast<std::uint32_t>(i), random.below(40),
                      static_cast<std::int32_t>(random.below(200000)) - 100000});
  }
  return people;
}

// The total balance per city, by grouping; cities come out in the order of their number.
std::vector<std::int64_t> city_totals(const std::vector<Person> &people) {
  std::unordered_map<std::uint32_t, std::int64_t> totals;
  for (const Person &person : people)
    totals[person.city] += person.balance;
  std::vector<std::int64_t> sums(40, 0);
  for (const auto &[city, total] : totals)
    sums[city] = total;
  return sums;
}

// How many people have a balance in [low, high), in a list sorted by balance.
std::size_t count_between(const std::vector<Person> &people, std::int32_t low, std::int32_t high) {
  auto before = [](const Person &person, std::int32_t balance) { return person.balance < balance; };
  auto first = std::lower_bound(people.begin(), people.end(), low, before);
  auto last = std::lower_bound(first, people.end(), high, before);
  return static_cast<std::size_t>(last - first);
}

void feed_order(Hash &hash, const std::vector<Person> &people) {
  for (const Person &person : people)
    hash.feed((std::uint64_t{person.id} << 32) ^ static_cast<std::uint32_t>(person.balance));
}

} // namespace

int main(int argc, char **argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 1000;
  Random random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  if (count < 1 || count > 5000000) {
    std::fprintf(stderr, "usage: record_sort COUNT SEED, COUNT from 1 to 5000000\n");
    return 2;
  }
  std::vector<Person> people = make_people(static_cast<std::size_t>(count), random);
  Hash hash;
  sort_by(people, [](const Person &p) -> const std::string & { return p.name; });
  feed_order(hash, people);
  std::printf("first %s, last %s\n", people.front().name.c_str(), people.back().name.c_str());
  sort_by(people, [](const Person &p) -> const std::uint32_t & { return p.city; });
  feed_order(hash, people);
  sort_by(people, [](const Person &p) -> const std::int32_t & { return p.balance; });
  feed_order(hash, people);
  std::printf("poorest %s %d\n", people.front().name.c_str(), people.front().balance);
  for (std::int64_t total : city_totals(people))
    hash.feed(static_cast<std::uint64_t>(total));
  for (int query = 0; query < count; query++) {
    const auto low = static_cast<std::int32_t>(random.below(200000)) - 100000;
    hash.feed(count_between(people, low, low + 5000));
  }
  std::printf("%016llx\n", static_cast<unsigned long long>(hash.value()));
}
