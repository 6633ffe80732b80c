// A model that is trained by several processes, as torch.nn.parallel.DistributedDataParallel: each has the
// whole model and a part of the batch, and gradients are averaged over them while they are computed.
#pragma once
#include <gradus/base/random_scope.h>
#include <gradus/distributed/reducer.h>
#include <gradus/nn/module.h>

#include <memory>

namespace gradus::nn {

struct DistributedDataParallelOptions {
  bool broadcast_buffers = true;        ///< rank 0's to all, before each forward pass in training
  double bucket_cap_mb = 25;            ///< MiB of gradients in an all-reduce
  double first_bucket_mb = 1;           ///< the first one begins sooner
  bool find_unused_parameters = false;  ///< some parameters get no gradient in some passes
};

namespace detail {

/// What DistributedDataParallel does that depends on no type.
class DistributedModule {
 public:
  DistributedModule(std::shared_ptr<Module> module, const DistributedDataParallelOptions& options);

  const std::shared_ptr<Module>& module() const { return module_; }
  bool sync() const { return sync_; }
  void set_sync(bool on) { sync_ = on; }
  size_t bucket_count() const { return reducer_->bucket_count(); }
  /// Before each forward pass.
  void begin_forward();
  /// The rows of `input` in the batch of all ranks.
  BatchPart part(const Tensor& input) const;

  void begin_join(bool divide_by_initial_world_size);
  /// Does what the other ranks need of this one until none has a batch left, and takes over their parameters.
  void finish_join();
  void end_join() { joining_ = false; }

 private:
  int meet_ranks(bool active);
  void broadcast_buffers(int src) const;

  std::shared_ptr<Module> module_;
  DistributedDataParallelOptions options_;
  std::shared_ptr<distributed::Reducer> reducer_;
  bool sync_ = true;
  // Of join(): how many ranks still have batches, the first of these, and whether they average gradients.
  bool joining_ = false, divide_by_active_ = false, others_sync_ = false;
  int active_ = 0, leader_ = 0;
};

}  // namespace detail

/// `model` is this process's, on its device; init_process_group() comes first. The wrapper makes all ranks'
/// models equal to rank 0's. Then each rank calls forward and backward on its rows of the batch, and steps
/// its own optimizer: the gradients are the average over ranks, bit for bit the same everywhere, and so the
/// parameters stay the same. With equally many rows on each rank and a loss that is a mean over rows, that is
/// the step that one process makes on all of them.
///
/// - .grad is a view of a bucket: what the next backward pass leaves in it is seen by who kept it.
/// - Between begin and end of a backward pass the ranks all-reduce bucket by bucket. Every rank must run the
///   same passes. A parameter that got no gradient throws E-DDP-UNUSED, naming it, unless
///   find_unused_parameters.
/// - In training, buffers (batch norm's statistics) become rank 0's before each forward pass; in eval() and
///   under NoGradGuard nothing is sent, so one rank may evaluate alone.
/// - Where all ranks have the same seed, dropout drops what one process would drop of the whole batch: the
///   ranks' rows, one after the other.
/// - parameters() are the model's; state_dict() has its names behind "module.". Save on rank 0 only.
///
/// Throws E-INIT without a process group, and E-DDP on every rank if the models differ or nothing is to be
/// trained.
template <class M>
class DistributedDataParallel : public Module {
 public:
  explicit DistributedDataParallel(std::shared_ptr<M> model,
                                   const DistributedDataParallelOptions& options = {})
      : ddp_(std::move(model), options) {
    register_module("module", ddp_.module());
  }

  /// The model.
  M& module() { return static_cast<M&>(*ddp_.module()); }

  /// x (N, …): this rank's rows.
  Tensor forward(const Tensor& x) override {
    return run([](M& model, const Tensor& rows) { return model(rows); }, x);
  }

  /// f(model, inputs…), for forward passes that take several tensors or give more than one.
  template <class F, class... X>
  auto run(const F& f, const Tensor& x, const X&... more) {
    ddp_.begin_forward();
    const BatchPartGuard part(ddp_.part(x));
    return f(module(), x, more...);
  }

  /// While one lives, backward passes of the forward passes in it add gradients up on this rank and send
  /// nothing.
  class NoSync {
   public:
    NoSync(detail::DistributedModule& ddp, bool on) : ddp_(ddp), before_(ddp.sync()) {
      if (on) ddp_.set_sync(false);
    }
    ~NoSync() { ddp_.set_sync(before_); }
    NoSync(const NoSync&) = delete;
    NoSync& operator=(const NoSync&) = delete;

   private:
    detail::DistributedModule& ddp_;
    bool before_;
  };
  /// With on = false it changes nothing: `auto guard = ddp.no_sync(i + 1 < accumulate);`
  [[nodiscard]] NoSync no_sync(bool on = true) { return NoSync(ddp_, on); }

  /// Runs `train`, a loop over this rank's batches, of which ranks may have different numbers: who is done
  /// first takes part in the others' collectives with gradients of 0, and gets their parameters in the end.
  /// Gradients are divided by the number of ranks, or by that of the ranks which still have batches.
  /// (Optimizers of ranks that were done keep the state they had.)
  template <class F>
  void join(const F& train, bool divide_by_initial_world_size = true) {
    struct End {
      detail::DistributedModule& ddp;
      ~End() { ddp.end_join(); }
    } const end{ddp_};
    ddp_.begin_join(divide_by_initial_world_size);
    train();
    ddp_.finish_join();
  }

  /// All-reduces in a backward pass.
  size_t bucket_count() const { return ddp_.bucket_count(); }

 private:
  detail::DistributedModule ddp_;
};

}  // namespace gradus::nn
