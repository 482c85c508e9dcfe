import pytest

from core.errors import BadInput
from llvm_tuning.suite.mutation import emptied

C = r"""
/* int sum(int x) { a comment } */
#define CALL(x) sum(x) {
static int sum(int x);
static const char *text = "sum(1) {"; static char brace = '{';
struct pair { int a, b; };
static int sum(int x) { if (x) { return x + '}'; } return sum(x - 1); }
static struct pair make(void) { struct pair p = {1, 2}; return p; }
static const char *
name(struct pair *p)
{
  return p->a ? "}" : text;
}
void run(int (*f)(int)) { for (int i = 0; i < sum(i); i++) { f(i); } }
"""

CPP = r"""
namespace {
template <typename T, typename U = std::map<T, int>> T twice(T x) noexcept { return x + x; }
class Shape {
public:
  virtual double area() const = 0;
  virtual ~Shape() {}
};
class Square : public Shape {
public: double area() const override { return s * s; }
  void grow(double by = 1'000.0) { s += by; }
private:
  double s = 0;
};
class Disc final : public Shape { double area() const final; };
double Disc::area() const { return 3; }
}
"""


@pytest.mark.parametrize(
    ("function", "whole", "mutant"),
    [
        ("sum", "{ if (x) { return x + '}'; } return sum(x - 1); }", "{ return (int){0}; }"),
        ("make", "{ struct pair p = {1, 2}; return p; }", "{ return (struct pair){0}; }"),
        ("name", '{\n  return p->a ? "}" : text;\n}', "{ return (const char *){0}; }"),
        ("run", "{ for (int i = 0; i < sum(i); i++) { f(i); } }", "{}"),
    ],
)
def test_a_c_function_returns_zero_or_nothing_and_all_else_stays(function, whole, mutant):
    assert whole in C
    assert emptied(C, function, "c") == C.replace(whole, mutant)


@pytest.mark.parametrize(
    ("function", "texts"),
    [
        ("twice", ["T twice(T x) noexcept { return {}; }"]),
        (
            "area",
            ["area() const override { return {}; }", "double Disc::area() const { return {}; }", "area() const = 0"],
        ),
        ("grow", ["void grow(double by = 1'000.0) {}\nprivate:"]),
    ],
)
def test_a_cpp_function_is_emptied_wherever_it_is_defined(function, texts):
    mutant = emptied(CPP, function, "c++")
    assert all(text in mutant for text in texts)


@pytest.mark.parametrize("function", ["absent", "f", "CALL"])
def test_a_function_that_is_not_defined_is_refused(function):
    with pytest.raises(BadInput, match=f"No definition of the function '{function}'"):
        emptied(C, function, "c")
