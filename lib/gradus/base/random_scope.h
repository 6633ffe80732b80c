// Where a thread's random numbers come from while it does a part of a larger piece of work.
#pragma once
#include <gradus/base/random.h>

namespace gradus {

/// While it lives, default_generator() is `generator` on this thread. Replicas that run side by side have one
/// each, so that what they draw does not depend on which thread comes first.
class GeneratorGuard {
 public:
  explicit GeneratorGuard(Generator& generator);
  ~GeneratorGuard();
  GeneratorGuard(const GeneratorGuard&) = delete;
  GeneratorGuard& operator=(const GeneratorGuard&) = delete;

 private:
  Generator* before_;
};

/// Rows first … first + rows - 1 of a batch; rows = 0: it is not known that this is a part of one.
struct BatchPart {
  int64_t first = 0, rows = 0;
};

/// While it lives, this thread works on that part of a batch: dropout, which draws a number for each element,
/// draws those that the elements have in the whole batch. So the same elements are dropped however the batch
/// was cut. (PyTorch has no such thing: its replicas drop different elements than one device would.)
class BatchPartGuard {
 public:
  explicit BatchPartGuard(const BatchPart& part);
  ~BatchPartGuard();
  BatchPartGuard(const BatchPartGuard&) = delete;
  BatchPartGuard& operator=(const BatchPartGuard&) = delete;

 private:
  BatchPart before_;
};

/// The part that this thread works on.
const BatchPart& batch_part();

}  // namespace gradus
