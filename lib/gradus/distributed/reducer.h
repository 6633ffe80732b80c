// Averages gradients over the ranks while the backward pass goes on. Internal to distributed/.
#pragma once
#include <gradus/distributed/buckets.h>
#include <gradus/distributed/work.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gradus::distributed {

/// Parameters are put into buckets in the reverse of their order, which is about the order in which their
/// gradients are known. A hook of each parameter moves its gradient into the bucket and makes .grad a view of
/// it; a bucket that is complete is all-reduced, after those before it, while the pass goes on. The pass ends
/// when all are.
class Reducer : public std::enable_shared_from_this<Reducer> {
 public:
  struct Options {
    size_t first_bucket_bytes, bucket_bytes;
    bool find_unused_parameters;
  };
  using Named = std::vector<std::pair<std::string, Tensor>>;

  /// All of `parameters` require grad. Their hooks stay when the reducer is gone, and do nothing then.
  static std::shared_ptr<Reducer> create(const Named& parameters, const Options& options);

  /// From now on, backward passes average gradients over `divisor` ranks (0: over all), or leave them alone.
  void prepare(bool sync, int divisor = 0);
  /// What this rank has to do while the others' backward passes average gradients and it has none.
  void take_part_with_zeros();

  size_t bucket_count() const { return buckets_.size(); }

 private:
  struct Parameter {
    std::string name;
    Tensor tensor, view;
    size_t bucket;
    bool ready = false;
  };
  struct Reduced {
    Tensor flat;
    size_t size = 0, missing = 0;
    Work work;
  };

  Reducer(const Named& parameters, const Options& options);
  void register_hooks();
  void on_gradient(size_t index);
  void begin_pass();
  void mark_ready(Parameter& parameter);
  void move_into_bucket(Parameter& parameter);
  void launch_complete();
  void finish_pass();
  std::vector<size_t> unused() const;
  void refuse_unused(const std::vector<size_t>& which) const;
  void finish_with(const std::vector<size_t>& unused);
  Tensor ready_flags() const;
  void wait();

  Options options_;
  std::vector<Parameter> parameters_;  // in the order of the model
  std::vector<Reduced> buckets_;
  bool sync_ = false, in_pass_ = false;
  int divisor_ = 0;
  size_t launched_ = 0;
};

}  // namespace gradus::distributed
