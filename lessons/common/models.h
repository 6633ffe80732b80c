// The seeds' two networks and the small one of the second seed, used by several lessons and benchmarks.
#pragma once
#include <gradus/gradus.h>

namespace lesson {

using namespace gradus;

// [snippet SimpleNet]
struct SimpleNet : nn::Module {
  nn::Sequential net =
      register_module("net", nn::Sequential(nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 128),
                                            nn::ReLU(), nn::Linear(128, 10)));

  Tensor forward(const Tensor& x) override { return net(x); }
};
// [/snippet SimpleNet]

// [snippet CNN]
struct CNN : nn::Module {
  nn::Sequential features = register_module(
      "features", nn::Sequential(nn::Conv2d(1, 32, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                                 nn::Conv2d(32, 64, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2)));
  nn::Sequential classifier =
      register_module("classifier", nn::Sequential(nn::Flatten(), nn::Linear(64 * 7 * 7, 256), nn::ReLU(),
                                                   nn::Dropout(0.5), nn::Linear(256, 10)));

  Tensor forward(const Tensor& x) override { return classifier(features(x)); }
};
// [/snippet CNN]

/// 16 features to one number.
inline nn::Sequential small_net() {
  return nn::Sequential(nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 1));
}

}  // namespace lesson
