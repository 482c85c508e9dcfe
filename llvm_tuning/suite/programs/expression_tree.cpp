// Parses random arithmetic expressions into trees of nodes with virtual functions, folds constants and evaluates.
// Usage: expression_tree EXPRESSIONS SEED; prints node counts and a hash of the values at many points.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

using Value = std::uint64_t; // arithmetic modulo 2^64

constexpr int points = 200;

class Node;
using Tree = std::unique_ptr<Node>;

class Node {
public:
  virtual ~Node() = default;
  virtual Value evaluate(Value x, Value y) const = 0;
  virtual const Value *constant() const { return nullptr; }
  virtual int size() const { return 1; }
  virtual Tree fold() = 0; // a simpler tree of the same value; takes this one's children
};

class Constant final : public Node {
public:
  explicit Constant(Value value) : value_(value) {}
  Value evaluate(Value, Value) const override { return value_; }
  const Value *constant() const override { return &value_; }
  Tree fold() override { return std::make_unique<Constant>(value_); }

private:
  Value value_;
};

class Variable final : public Node {
public:
  explicit Variable(char name) : name_(name) {}
  Value evaluate(Value x, Value y) const override { return name_ == 'x' ? x : y; }
  Tree fold() override { return std::make_unique<Variable>(name_); }

private:
  char name_;
};

struct Add {
  static Value apply(Value a, Value b) { return a + b; }
};
struct Subtract {
  static Value apply(Value a, Value b) { return a - b; }
};
struct Multiply {
  static Value apply(Value a, Value b) { return a * b; }
};
struct Divide {
  static Value apply(Value a, Value b) { return b == 0 ? 0 : a / b; }
};

template <typename Operation> class Binary final : public Node {
public:
  Binary(Tree left, Tree right) : left_(std::move(left)), right_(std::move(right)) {}
  Value evaluate(Value x, Value y) const override {
    return Operation::apply(left_->evaluate(x, y), right_->evaluate(x, y));
  }
  int size() const override { return 1 + left_->size() + right_->size(); }
  Tree fold() override {
    Tree left = left_->fold(), right = right_->fold();
    if (left->constant() && right->constant())
      return std::make_unique<Constant>(Operation::apply(*left->constant(), *right->constant()));
    return std::make_unique<Binary>(std::move(left), std::move(right));
  }

private:
  Tree left_, right_;
};

// sum = product {(+ | -) product}; product = atom {(* | /) atom}; atom = number | x | y | ( sum )
class Parser {
public:
  explicit Parser(const std::string &text) : at_(text.c_str()) {}

  Tree parse_sum() {
    Tree left = parse_product();
    while (*at_ == '+' || *at_ == '-') {
      if (*at_++ == '+')
        left = std::make_unique<Binary<Add>>(std::move(left), parse_product());
      else
        left = std::make_unique<Binary<Subtract>>(std::move(left), parse_product());
    }
    return left;
  }

private:
  Tree parse_product() {
    Tree left = parse_atom();
    while (*at_ == '*' || *at_ == '/') {
      if (*at_++ == '*')
        left = std::make_unique<Binary<Multiply>>(std::move(left), parse_atom());
      else
        left = std::make_unique<Binary<Divide>>(std::move(left), parse_atom());
    }
    return left;
  }

  Tree parse_atom() {
    if (*at_ == '(') {
      at_++;
      Tree inner = parse_sum();
      if (*at_++ != ')')
        throw std::runtime_error("expected )");
      return inner;
    }
    if (*at_ == 'x' || *at_ == 'y')
      return std::make_unique<Variable>(*at_++);
    if (*at_ < '0' || *at_ > '9')
      throw std::runtime_error("expected a number");
    Value number = 0;
    while (*at_ >= '0' && *at_ <= '9')
      number = number * 10 + static_cast<Value>(*at_++ - '0');
    return std::make_unique<Constant>(number);
  }

  const char *at_;
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

std::string random_text(Random &random, int depth) {
  if (depth == 0 || random.below(8) == 0)
    return random.below(3) == 0 ? std::to_string(random.below(1000)) : random.below(2) == 0 ? "x" : "y";
  std::string left = random_text(random, depth - 1), right = random_text(random, depth - 1);
  const char operation = "++--**/"[random.below(7)];
  return random.below(2) == 0 ? "(" + left + operation + right + ")" : left + operation + right;
}

} // namespace

int main(int argc, char **argv) {
  const int expressions = argc > 1 ? std::atoi(argv[1]) : 20;
  Random random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  if (expressions < 1) {
    std::fprintf(stderr, "usage: expression_tree EXPRESSIONS SEED, EXPRESSIONS from 1\n");
    return 2;
  }
  std::uint64_t hash = 1469598103934665603ull;
  long long parsed = 0, folded = 0;
  for (int e = 0; e < expressions; e++) {
    const std::string text = random_text(random, 7);
    const Tree tree = Parser(text).parse_sum();
    const Tree simple = tree->fold();
    parsed += tree->size();
    folded += simple->size();
    Value x = 3, y = static_cast<Value>(e);
    for (int p = 0; p < points; p++) {
      const Value value = simple->evaluate(x, y);
      hash = (hash ^ value) * 1099511628211ull;
      x += value | 1;
      y = y * 5 + 1;
    }
    hash = (hash ^ tree->evaluate(x, y)) * 1099511628211ull;
  }
  std::printf("nodes %lld folded %lld\n%016llx\n", parsed, folded, static_cast<unsigned long long>(hash));
}
