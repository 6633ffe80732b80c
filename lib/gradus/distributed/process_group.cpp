#include <gradus/distributed/collective_queue.h>
#include <gradus/distributed/process_group.h>
#include <gradus/distributed/reduce.h>
#include <gradus/distributed/watch.h>
#include <gradus/ops/view.h>
#include <gradus/runtime/device_stats.h>
#include <gradus/runtime/stream.h>
#include <gradus/tensor/grad_mode.h>
#include <gradus/tensor/views.h>

namespace gradus::distributed {
namespace {

using Tensors = std::vector<Tensor>;

void check_root(const char* op, int root, int size) {
  GRADUS_CHECK(root >= 0 && root < size, "E-ARG", op, ": there is no rank ", root, " among ", size);
}

void check_list(const char* op, const Tensors& list, const Tensor& tensor, int size) {
  GRADUS_CHECK(list.size() == static_cast<size_t>(size), "E-ARG", op, ": expected a tensor for each of ",
               size, " ranks, got ", list.size());
  for (const Tensor& part : list) {
    GRADUS_CHECK(part.sizes() == tensor.sizes(), "E-SHAPE", op, ": expected tensors of one shape, got ",
                 tensor.sizes(), " and ", part.sizes());
    GRADUS_CHECK(part.dtype() == tensor.dtype(), "E-DTYPE", op, ": expected tensors of one dtype, got ",
                 to_string(tensor.dtype()), " and ", to_string(part.dtype()));
    GRADUS_CHECK(part.device() == tensor.device(), "E-DEVICE-MISMATCH", op,
                 ": expected all tensors to be on the same device, got ", tensor.device(), " and ",
                 part.device());
  }
}

// `whole`, which has the elements of all ranks' parts, as (size, n).
Tensor by_rank(const char* op, const Tensor& whole, const Tensor& part, int size) {
  const int64_t n = part.numel();
  GRADUS_CHECK(whole.numel() == n * size && whole.is_contiguous(), "E-SHAPE", op, ": a tensor of ",
               part.sizes(), " for each of ", size, " ranks does not make one of ", whole.sizes(),
               whole.is_contiguous() ? "" : ", which is not contiguous");
  GRADUS_CHECK(whole.dtype() == part.dtype(), "E-DTYPE", op, ": got ", to_string(whole.dtype()), " and ",
               to_string(part.dtype()));
  GRADUS_CHECK(whole.device() == part.device(), "E-DEVICE-MISMATCH", op,
               ": expected all tensors to be on the same device, got ", whole.device(), " and ",
               part.device());
  return gradus::detail::make_view(whole, {size, n}, {n, 1}, whole.storage_offset());
}

Tensor room_for_all(const Tensor& part, int size) {
  return empty({size, part.numel()}, part.dtype(), part.device());
}

Tensor joined(const Tensors& parts) {
  const NoGradGuard no_grad;
  Tensor all = room_for_all(parts[0], static_cast<int>(parts.size()));
  for (size_t r = 0; r < parts.size(); ++r)
    all.select(0, static_cast<int64_t>(r)).view(parts[r].sizes()).copy_(parts[r]);
  return all;
}

void deal(const Tensor& all, const Tensors& parts) {
  for (size_t r = 0; r < parts.size(); ++r) {
    Tensor part = parts[r];
    part.copy_(all.select(0, static_cast<int64_t>(r)).view(part.sizes()));
  }
  if (!all.is_cpu()) current_stream(all.device()).synchronize();
}

// What the collective reads is there when what was queued so far on this thread's stream is done.
std::function<void()> values_of(const Tensor& tensor) {
  if (!tensor.defined() || tensor.is_cpu()) return [] {};
  auto event = std::make_shared<Event>(tensor.device());
  event->record();
  return [event] { event->synchronize(); };
}

}  // namespace

ProcessGroup::ProcessGroup(std::shared_ptr<Store> store, std::shared_ptr<Backend> backend, int rank, int size,
                           const Options& options)
    : rank_(rank),
      size_(size),
      store_(std::move(store)),
      backend_(std::move(backend)),
      watch_(std::make_shared<Watch>(store_, rank, size, Watch::Limits{options.timeout, options.silence})),
      queue_(std::make_unique<CollectiveQueue>(
          backend_, size, options.checking,
          [watch = watch_](const std::exception& error) { return watch->explain(error); })) {
  watch_->start(*queue_);
}

ProcessGroup::~ProcessGroup() {
  try {
    queue_->finish();
    if (!queue_->failure()) watch_->farewell();
    watch_->stop();
    if (!queue_->failure()) store_->leave();
  } catch (const Error&) {  // the store is gone, and with it whoever could be told
    watch_->stop();
  }
}

template <class F>
Work ProcessGroup::push(const Signature& signature, const Tensor& tensor, const F& collective) {
  return queue_->push(signature, [collective, wait = values_of(tensor)](Backend& backend) {
    wait();
    collective(backend);
  });
}

Work ProcessGroup::all_reduce(const Tensor& tensor, ReduceOp op) {
  reduction_of(op, tensor.dtype());
  auto& counters = gradus::detail::counters_of(tensor.device());
  gradus::detail::count(counters.all_reduces);
  gradus::detail::count(counters.bytes_all_reduced, static_cast<int64_t>(tensor.nbytes()));
  tensor.bump_version();
  return push(signature_of(Collective::all_reduce, tensor, op, -1), tensor,
              [=](Backend& backend) { backend.all_reduce(tensor, op); });
}

Work ProcessGroup::broadcast(const Tensor& tensor, int src) {
  check_root("broadcast", src, size_);
  if (src != rank_) tensor.bump_version();
  return push(signature_of(Collective::broadcast, tensor, {}, src), tensor,
              [=](Backend& backend) { backend.broadcast(tensor, src); });
}

Work ProcessGroup::all_gather(const std::vector<Tensor>& outputs, const Tensor& tensor) {
  check_list("all_gather", outputs, tensor, size_);
  const Tensor all = room_for_all(tensor, size_);
  return push(signature_of(Collective::all_gather, tensor, {}, -1), tensor, [=](Backend& backend) {
    backend.all_gather(all, tensor);
    deal(all, outputs);
  });
}

Work ProcessGroup::all_gather_into_tensor(const Tensor& output, const Tensor& input) {
  const Tensor all = by_rank("all_gather_into_tensor", output, input, size_);
  output.bump_version();
  return push(signature_of(Collective::all_gather, input, {}, -1), input,
              [=](Backend& backend) { backend.all_gather(all, input); });
}

Work ProcessGroup::reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs, ReduceOp op) {
  check_list("reduce_scatter", inputs, output, size_);
  return reduce_scatter_tensor(output, joined(inputs), op);
}

Work ProcessGroup::reduce_scatter_tensor(const Tensor& output, const Tensor& input, ReduceOp op) {
  const Tensor all = by_rank("reduce_scatter_tensor", input, output, size_);
  reduction_of(op, input.dtype());
  output.bump_version();
  return push(signature_of(Collective::reduce_scatter, output, op, -1), input,
              [=](Backend& backend) { backend.reduce_scatter(output, all, op); });
}

Work ProcessGroup::scatter(const Tensor& output, const std::vector<Tensor>& inputs, int src) {
  check_root("scatter", src, size_);
  if (src == rank_) check_list("scatter", inputs, output, size_);
  const Tensor all = src == rank_ ? joined(inputs) : Tensor();
  output.bump_version();
  return push(signature_of(Collective::scatter, output, {}, src), output,
              [=](Backend& backend) { backend.scatter(output, all, src); });
}

Work ProcessGroup::gather(const Tensor& tensor, const std::vector<Tensor>& outputs, int dst) {
  check_root("gather", dst, size_);
  if (dst == rank_) check_list("gather", outputs, tensor, size_);
  const Tensor all = dst == rank_ ? room_for_all(tensor, size_) : Tensor();
  return push(signature_of(Collective::gather, tensor, {}, dst), tensor, [=](Backend& backend) {
    backend.gather(all, tensor, dst);
    if (all.defined()) deal(all, outputs);
  });
}

Work ProcessGroup::barrier() {
  return push(signature_of(Collective::barrier, {}, {}, -1), {}, [](Backend& backend) { backend.barrier(); });
}

}  // namespace gradus::distributed
