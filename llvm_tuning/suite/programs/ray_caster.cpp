// Casts rays into a scene of spheres, discs and a plane behind a virtual interface; shadows from one light.
// Usage: ray_caster SIDE SEED (SIDE x SIDE pixels); prints coverage and a hash of depth and shade of every pixel.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace {

struct Vec {
  double x, y, z;
  friend Vec operator+(Vec a, Vec b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
  friend Vec operator-(Vec a, Vec b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
  friend Vec operator*(Vec a, double s) { return {a.x * s, a.y * s, a.z * s}; }
};

double dot(Vec a, Vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
Vec unit(Vec a) { return a * (1.0 / std::sqrt(dot(a, a))); }

struct Ray {
  Vec origin, direction;
};

constexpr double nothing = 1e9; // the distance of a ray that hits nothing
constexpr double skin = 1e-6;   // hits nearer than this are the surface that the ray starts from

class Shape {
public:
  explicit Shape(double albedo) : albedo_(albedo) {}
  virtual ~Shape() = default;
  virtual double distance(const Ray &ray) const = 0;
  virtual Vec normal(Vec at) const = 0;
  double albedo() const { return albedo_; }

private:
  double albedo_;
};

class Sphere final : public Shape {
public:
  Sphere(Vec centre, double radius, double albedo) : Shape(albedo), centre_(centre), radius_(radius) {}
  double distance(const Ray &ray) const override {
    const Vec to = ray.origin - centre_;
    const double half = dot(to, ray.direction);
    const double inside = half * half - dot(to, to) + radius_ * radius_;
    if (inside < 0.0)
      return nothing;
    const double root = std::sqrt(inside);
    if (-half - root > skin)
      return -half - root;
    return -half + root > skin ? -half + root : nothing;
  }
  Vec normal(Vec at) const override { return (at - centre_) * (1.0 / radius_); }

private:
  Vec centre_;
  double radius_;
};

class Plane : public Shape {
public:
  Plane(Vec through, Vec normal, double albedo) : Shape(albedo), through_(through), normal_(normal) {}
  double distance(const Ray &ray) const override {
    const double towards = dot(ray.direction, normal_);
    if (towards == 0.0)
      return nothing;
    const double along = dot(through_ - ray.origin, normal_) / towards;
    return along > skin ? along : nothing;
  }
  Vec normal(Vec) const override { return normal_; }

private:
  Vec through_, normal_;
};

class Disc final : public Plane {
public:
  Disc(Vec centre, Vec normal, double radius, double albedo)
      : Plane(centre, normal, albedo), centre_(centre), radius_(radius) {}
  double distance(const Ray &ray) const override {
    const double along = Plane::distance(ray);
    const Vec apart = ray.origin + ray.direction * along - centre_;
    return dot(apart, apart) <= radius_ * radius_ ? along : nothing;
  }

private:
  Vec centre_;
  double radius_;
};

using Scene = std::vector<std::unique_ptr<Shape>>;

struct Hit {
  const Shape *shape;
  double distance;
};

Hit nearest_hit(const Scene &scene, const Ray &ray) {
  Hit best{nullptr, nothing};
  for (const auto &shape : scene) {
    const double distance = shape->distance(ray);
    if (distance < best.distance)
      best = {shape.get(), distance};
  }
  return best;
}

double shade(const Scene &scene, const Ray &ray, const Hit &hit) {
  const Vec light = unit({0.5, 1.0, -0.6});
  if (!hit.shape)
    return 0.3 + 0.2 * ray.direction.y; // the sky
  const Vec at = ray.origin + ray.direction * hit.distance;
  const double facing = dot(hit.shape->normal(at), light);
  const bool lit = facing > 0.0 && !nearest_hit(scene, {at, light}).shape;
  return hit.shape->albedo() * (lit ? 0.15 + 0.85 * facing : 0.15);
}

Scene make_scene(std::uint64_t state) {
  auto uniform = [&state](double low, double high) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return low + (high - low) * (static_cast<double>(state >> 11) / 9007199254740992.0);
  };
  Scene scene;
  scene.push_back(std::make_unique<Plane>(Vec{0, -1, 0}, Vec{0, 1, 0}, 0.6));
  for (int i = 0; i < 24; i++) {
    const Vec at{uniform(-4, 4), uniform(-0.8, 2.0), uniform(3, 9)};
    const double size = uniform(0.2, 0.7), albedo = uniform(0.3, 1.0);
    if (i % 3 == 0)
      scene.push_back(std::make_unique<Disc>(at, unit({uniform(-1, 1), 0.5, -1}), size, albedo));
    else
      scene.push_back(std::make_unique<Sphere>(at, size, albedo));
  }
  return scene;
}

std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

} // namespace

int main(int argc, char **argv) {
  const int side = argc > 1 ? std::atoi(argv[1]) : 64;
  if (side < 2 || side > 10000) {
    std::fprintf(stderr, "usage: ray_caster SIDE SEED, SIDE from 2 to 10000\n");
    return 2;
  }
  const Scene scene = make_scene(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
  std::uint64_t hash = 1469598103934665603ull;
  double brightness = 0.0;
  int covered = 0;
  for (int row = 0; row < side; row++)
    for (int column = 0; column < side; column++) {
      const Vec towards{2.0 * column / side - 1.0, 1.0 - 2.0 * row / side, 1.5};
      const Ray ray{{0.0, 0.3, 0.0}, unit(towards)};
      const Hit hit = nearest_hit(scene, ray);
      const double value = shade(scene, ray, hit);
      hash = (hash ^ bits_of(hit.distance)) * 1099511628211ull;
      hash = (hash ^ bits_of(value)) * 1099511628211ull;
      brightness += value;
      covered += hit.shape != nullptr;
    }
  std::printf("covered %d of %d\nbrightness %.6f\n%016llx\n", covered, side * side, brightness / (side * side),
              static_cast<unsigned long long>(hash));
}
