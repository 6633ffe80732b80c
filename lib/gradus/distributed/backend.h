// What moves the bytes of collectives: Gloo, NCCL. Everything else, the group does for all of them.
#pragma once
#include <gradus/tensor/tensor.h>

#include <vector>

namespace gradus::distributed {

/// How all_reduce() and reduce_scatter() combine the ranks' elements; avg is the sum divided by their number.
enum class ReduceOp : uint8_t { sum, avg, max, min };

const char* to_string(ReduceOp op);

/// Collectives between the ranks of one group, called by one thread, in the same order on all ranks, with
/// tensors that were checked, whose values are there: they were waited for. A call returns when its result is
/// there too. A rank that fails may leave the others waiting: the group knows, and forgets them.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;

  virtual void all_reduce(const Tensor& tensor, ReduceOp op) = 0;
  virtual void broadcast(const Tensor& tensor, int root) = 0;
  /// output (ranks, n): the inputs, of n elements each, by rank.
  virtual void all_gather(const Tensor& output, const Tensor& input) = 0;
  /// output: this rank's part of the combined input (ranks, n).
  virtual void reduce_scatter(const Tensor& output, const Tensor& input, ReduceOp op) = 0;
  /// Only the root's input (ranks, n) of scatter(), and its output (ranks, n) of gather(), are defined.
  virtual void scatter(const Tensor& output, const Tensor& input, int root) = 0;
  virtual void gather(const Tensor& output, const Tensor& input, int root) = 0;
  virtual void barrier() = 0;
};

}  // namespace gradus::distributed
