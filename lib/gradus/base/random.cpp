#include <gradus/base/error.h>
#include <gradus/base/random.h>
#include <gradus/base/random_scope.h>
#include <gradus/base/shape.h>

#include <numeric>
#include <random>
#include <utility>

namespace gradus {
namespace {

void store(uint8_t* out, uint64_t value) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<uint8_t>(value >> (8 * i));
}

uint64_t load(const uint8_t* in) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= uint64_t{in[i]} << (8 * i);
  return value;
}

}  // namespace

void Generator::manual_seed(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  stream_ = {seed, 0};
}

uint64_t Generator::seed() {
  std::random_device system;
  const uint64_t seed = uint64_t{system()} << 32 | system();
  manual_seed(seed);
  return seed;
}

uint64_t Generator::initial_seed() const {
  const std::lock_guard lock(mutex_);
  return stream_.seed;
}

PhiloxStream Generator::reserve(uint64_t calls) {
  const std::lock_guard lock(mutex_);
  const PhiloxStream now = stream_;
  stream_.offset += calls;
  return now;
}

Generator::State Generator::get_state() const {
  const std::lock_guard lock(mutex_);
  State state;
  store(state.data(), stream_.seed);
  store(state.data() + 8, stream_.offset);
  return state;
}

void Generator::set_state(std::span<const uint8_t> state) {
  GRADUS_CHECK(state.size() == State{}.size(), "E-ARG",
               "set_state: expected a generator state of 16 bytes, got ", state.size(),
               hint("pass what get_state() returned"));
  const std::lock_guard lock(mutex_);
  stream_ = {load(state.data()), load(state.data() + 8)};
}

namespace {

thread_local Generator* generator_of_thread = nullptr;
thread_local BatchPart part_of_thread;

}  // namespace

Generator& default_generator() {
  static Generator generator;
  return generator_of_thread ? *generator_of_thread : generator;
}

GeneratorGuard::GeneratorGuard(Generator& generator)
    : before_(std::exchange(generator_of_thread, &generator)) {}
GeneratorGuard::~GeneratorGuard() { generator_of_thread = before_; }

BatchPartGuard::BatchPartGuard(const BatchPart& part) : before_(std::exchange(part_of_thread, part)) {}
BatchPartGuard::~BatchPartGuard() { part_of_thread = before_; }

const BatchPart& batch_part() { return part_of_thread; }

void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

std::vector<int64_t> random_permutation(int64_t n, Generator& generator) {
  GRADUS_CHECK(n >= 0, "E-ARG", "random_permutation: n must not be negative, got ", n);
  checked_bytes({n}, sizeof(int64_t), "random_permutation");
  const PhiloxStream stream = generator.reserve();
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (auto i = static_cast<uint64_t>(n); i-- > 1;) std::swap(order[i], order[stream.below(i, i + 1)]);
  return order;
}

}  // namespace gradus
