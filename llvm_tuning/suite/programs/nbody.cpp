// Gravity among many bodies, all pairs, leapfrog integration, with a small vector class template.
// Usage: nbody BODIES SEED; prints the energy before and after and a hash of all positions and velocities.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

template <typename T> struct Vec3 {
  T x{}, y{}, z{};

  friend Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend Vec3 operator*(Vec3 a, T s) { return {a.x * s, a.y * s, a.z * s}; }
  Vec3 &operator+=(Vec3 b) { return *this = *this + b; }
  Vec3 &operator-=(Vec3 b) { return *this = *this - b; }
  friend T dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
};

using Vector = Vec3<double>;

struct Body {
  Vector position, velocity, acceleration;
  double mass = 0.0;
};

constexpr int steps = 10;
constexpr double dt = 0.005;
constexpr double softening2 = 0.01; // keeps close encounters finite

class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double uniform(double low, double high) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return low + (high - low) * (static_cast<double>(state_ >> 11) / 9007199254740992.0);
  }

private:
  std::uint64_t state_;
};

void accelerate(std::vector<Body> &bodies) {
  for (Body &body : bodies)
    body.acceleration = Vector{};
  for (std::size_t i = 0; i < bodies.size(); i++) {
    Body &a = bodies[i];
    for (std::size_t j = i + 1; j < bodies.size(); j++) {
      Body &b = bodies[j];
      const Vector apart = b.position - a.position;
      const double distance2 = dot(apart, apart) + softening2;
      const double pull = 1.0 / (distance2 * std::sqrt(distance2));
      a.acceleration += apart * (b.mass * pull);
      b.acceleration -= apart * (a.mass * pull);
    }
  }
}

void advance(std::vector<Body> &bodies) {
  for (Body &body : bodies) {
    body.velocity += body.acceleration * (dt / 2);
    body.position += body.velocity * dt;
  }
  accelerate(bodies);
  for (Body &body : bodies)
    body.velocity += body.acceleration * (dt / 2);
}

double energy(const std::vector<Body> &bodies) {
  double total = 0.0;
  for (std::size_t i = 0; i < bodies.size(); i++) {
    const Body &a = bodies[i];
    total += 0.5 * a.mass * dot(a.velocity, a.velocity);
    for (std::size_t j = i + 1; j < bodies.size(); j++) {
      const Vector apart = bodies[j].position - a.position;
      total -= a.mass * bodies[j].mass / std::sqrt(dot(apart, apart) + softening2);
    }
  }
  return total;
}

class Hash {
public:
  void feed(const Vector &v) {
    for (double value : {v.x, v.y, v.z}) {
      std::uint64_t bits;
      std::memcpy(&bits, &value, sizeof bits);
      value_ = (value_ ^ bits) * 1099511628211ull;
    }
  }
  std::uint64_t value() const { return value_; }

private:
  std::uint64_t value_ = 1469598103934665603ull;
};

} // namespace

int main(int argc, char **argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 100;
  Random random(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  if (count < 1 || count > 100000) {
    std::fprintf(stderr, "usage: nbody BODIES SEED, BODIES from 1 to 100000\n");
    return 2;
  }
  std::vector<Body> bodies(static_cast<std::size_t>(count));
  for (Body &body : bodies) {
    body.position = {random.uniform(-1, 1), random.uniform(-1, 1), random.uniform(-1, 1)};
    body.velocity = {random.uniform(-0.5, 0.5), random.uniform(-0.5, 0.5), random.uniform(-0.5, 0.5)};
    body.mass = random.uniform(0.5, 1.5) / count;
  }
  accelerate(bodies);
  std::printf("energy before %.9f\n", energy(bodies));
  Hash hash;
  for (int step = 0; step < steps; step++) {
    advance(bodies);
    hash.feed(bodies.front().acceleration);
  }
  for (const Body &body : bodies) {
    hash.feed(body.position);
    hash.feed(body.velocity);
  }
  std::printf("energy after %.9f\n%016llx\n", energy(bodies), static_cast<unsigned long long>(hash.value()));
}
