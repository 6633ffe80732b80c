// The ranks of a job, and what they do together.
#pragma once
#include <gradus/distributed/backend.h>
#include <gradus/distributed/store.h>
#include <gradus/distributed/work.h>

#include <memory>
#include <vector>

namespace gradus::distributed {

class CollectiveQueue;
class Watch;
struct Signature;

/// Collectives among the ranks of a job. Each is queued and returns at once; wait() of what it returns gives
/// the result or throws. Every rank must call the same ones, in the same order, with tensors of equal shape
/// and dtype: where GRADUS_DISTRIBUTED_CHECK=1, ranks compare that first, and all of them throw E-COLLECTIVE
/// if they differ. After any failure the group is useless, and every call throws what the first did:
///   E-RANK-LOST  a rank has ended, or has not answered for longer than `silence`
///   E-TIMEOUT    a rank did not take part in time
///   E-COLLECTIVE a rank does something else
/// The message names the ranks. Wrong arguments throw E-ARG, E-SHAPE, E-DTYPE or E-DEVICE-MISMATCH at once,
/// and leave the group as it was.
///
/// Tensors must not be changed before their collective is over. No gradients flow through collectives.
class ProcessGroup {
 public:
  struct Options {
    milliseconds timeout;  ///< of a collective
    milliseconds silence;  ///< of a rank; 0: it is waited for until the timeout
    bool checking = false;
  };
  ProcessGroup(std::shared_ptr<Store> store, std::shared_ptr<Backend> backend, int rank, int size,
               const Options& options);
  /// Finishes what is queued and waits for the other ranks to come here too, unless something has failed.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  const char* backend_name() const { return backend_->name(); }

  /// Every rank's tensor becomes the sum (average, …) of all; the same bits on all ranks.
  Work all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::sum);
  /// Every rank's tensor becomes that of rank `src`.
  Work broadcast(const Tensor& tensor, int src);
  /// outputs[r] becomes rank r's tensor; in one tensor: output (size, …) or (size * rows, …).
  Work all_gather(const std::vector<Tensor>& outputs, const Tensor& tensor);
  Work all_gather_into_tensor(const Tensor& output, const Tensor& input);
  /// `output` becomes the sum (average, …) of the ranks' inputs[rank()]; in one tensor: as all_gather.
  Work reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs, ReduceOp op = ReduceOp::sum);
  Work reduce_scatter_tensor(const Tensor& output, const Tensor& input, ReduceOp op = ReduceOp::sum);
  /// `output` becomes inputs[rank()] of rank `src`, which alone gives inputs.
  Work scatter(const Tensor& output, const std::vector<Tensor>& inputs, int src);
  /// outputs[r] becomes rank r's tensor on rank `dst`, which alone gives outputs.
  Work gather(const Tensor& tensor, const std::vector<Tensor>& outputs, int dst);
  /// Over when all ranks have begun it.
  Work barrier();

 private:
  template <class F>
  Work push(const Signature& signature, const Tensor& tensor, const F& collective);

  int rank_, size_;
  std::shared_ptr<Store> store_;
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<Watch> watch_;
  std::unique_ptr<CollectiveQueue> queue_;
};

}  // namespace gradus::distributed
