// Built against an installed Gradus by install_test.cmake: one training step, with every layer linked.
#include <gradus/base/version.h>
#include <gradus/gradus.h>

#include <cstdio>

int main() {
  const gradus::Tensor x = gradus::ones({4, 3});
  const gradus::Tensor w = gradus::ones({3, 2}).requires_grad_();
  const gradus::Tensor loss = x.matmul(w).sum();
  loss.backward();
  std::printf("Gradus %s: loss %g, gradient %g\n", GRADUS_VERSION, loss.item<double>(),
              w.grad().sum().item<double>());
  return loss.item<double>() == 24 && w.grad().sum().item<double>() == 24 ? 0 : 1;
}
