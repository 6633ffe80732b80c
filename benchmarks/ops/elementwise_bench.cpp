// What an operation on 16 elements costs beside the loop that does its work, without and with the tape.
#include <benchmark/benchmark.h>
#include <gradus/gradus.h>

namespace {

using namespace gradus;

void Loop(benchmark::State& state) {
  alignas(64) float a[16], b[16], y[16];
  for (int i = 0; i < 16; ++i) a[i] = static_cast<float>(i), b[i] = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(a);
    benchmark::DoNotOptimize(b);
#pragma omp simd
    for (int i = 0; i < 16; ++i) y[i] = a[i] + b[i];
    benchmark::DoNotOptimize(y);
  }
}
void Add(benchmark::State& state) {
  const Tensor a = randn({16}), b = randn({16});
  for (auto _ : state) benchmark::DoNotOptimize(add(a, b).impl());
}
void AddRecorded(benchmark::State& state) {
  const Tensor a = randn({16}).requires_grad_(), b = randn({16});
  for (auto _ : state) benchmark::DoNotOptimize(add(a, b).impl());
}
void Mul(benchmark::State& state) {
  const Tensor a = randn({16}), b = randn({16});
  for (auto _ : state) benchmark::DoNotOptimize(mul(a, b).impl());
}
void MulRecorded(benchmark::State& state) {
  const Tensor a = randn({16}).requires_grad_(), b = randn({16});
  for (auto _ : state) benchmark::DoNotOptimize(mul(a, b).impl());
}
void Relu(benchmark::State& state) {
  const Tensor a = randn({16});
  for (auto _ : state) benchmark::DoNotOptimize(relu(a).impl());
}
void ReluRecorded(benchmark::State& state) {
  const Tensor a = randn({16}).requires_grad_();
  for (auto _ : state) benchmark::DoNotOptimize(relu(a).impl());
}
BENCHMARK(Loop);
BENCHMARK(Add);
BENCHMARK(AddRecorded);
BENCHMARK(Mul);
BENCHMARK(MulRecorded);
BENCHMARK(Relu);
BENCHMARK(ReluRecorded);

}  // namespace
