#include <gradus/distributed/ddp.h>
#include <gradus/distributed/distributed.h>
#include <gradus/distributed/same_model.h>
#include <gradus/ops/factories.h>
#include <gradus/tensor/grad_mode.h>

namespace gradus::nn::detail {
namespace {

std::vector<Tensor> state_of(const Module& module) {
  std::vector<Tensor> all = module.parameters();
  for (const Tensor& buffer : module.buffers()) all.push_back(buffer);
  return all;
}

size_t bytes_of(double mib) { return static_cast<size_t>(mib * 1024 * 1024); }

}  // namespace

DistributedModule::DistributedModule(std::shared_ptr<Module> module,
                                     const DistributedDataParallelOptions& options)
    : module_(std::move(module)), options_(options) {
  GRADUS_CHECK(module_, "E-ARG", "DistributedDataParallel: there is no model");
  GRADUS_CHECK(options.bucket_cap_mb > 0 && options.first_bucket_mb > 0, "E-ARG",
               "DistributedDataParallel: buckets must have a size, got ", options.first_bucket_mb, " and ",
               options.bucket_cap_mb, " MiB");
  distributed::check_same_model(*module_);
  distributed::Reducer::Named trained;
  for (auto& named : module_->named_parameters())
    if (named.second.requires_grad()) trained.push_back(std::move(named));
  GRADUS_CHECK(
      !trained.empty(), "E-DDP",
      "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
      "gradient");
  distributed::broadcast_coalesced(state_of(*module_), 0);
  reducer_ = distributed::Reducer::create(
      trained,
      {bytes_of(options.first_bucket_mb), bytes_of(options.bucket_cap_mb), options.find_unused_parameters});
}

void DistributedModule::begin_forward() {
  if (!GradMode::is_enabled()) return;
  const int src = joining_ ? meet_ranks(/*active=*/true) : 0;
  reducer_->prepare(sync_, joining_ && divide_by_active_ ? active_ : 0);
  if (sync_ && module_->is_training()) broadcast_buffers(src);
}

void DistributedModule::broadcast_buffers(int src) const {
  const std::vector<Tensor> buffers = module_->buffers();
  if (options_.broadcast_buffers && !buffers.empty()) distributed::broadcast_coalesced(buffers, src);
}

BatchPart DistributedModule::part(const Tensor& input) const {
  if (!input.defined() || input.dim() == 0) return {};
  const int64_t rows = input.size(0);
  return {distributed::get_rank() * rows, rows};
}

void DistributedModule::begin_join(bool divide_by_initial_world_size) {
  GRADUS_CHECK(!joining_, "E-DDP", "DistributedDataParallel: join() within join()");
  joining_ = true;
  divide_by_active_ = !divide_by_initial_world_size;
}

// Every rank says whether it has a batch; returns the first that has one. Without any, the last such stays.
int DistributedModule::meet_ranks(bool active) {
  const int size = distributed::get_world_size();
  const Tensor mine = zeros({2}, {.dtype = kInt32}), all = zeros({size, 2}, {.dtype = kInt32});
  mine.data<int32_t>()[0] = active;
  mine.data<int32_t>()[1] = sync_;
  distributed::all_gather_into_tensor(all, mine);
  const int32_t* const of = all.data<int32_t>();
  active_ = 0;
  for (int rank = size - 1; rank >= 0; --rank) {
    if (!of[2 * rank]) continue;
    ++active_;
    leader_ = rank;
    others_sync_ = of[2 * rank + 1];
  }
  return leader_;
}

void DistributedModule::finish_join() {
  for (;;) {
    const int src = meet_ranks(/*active=*/false);
    if (active_ == 0) break;
    if (!others_sync_) continue;
    reducer_->prepare(true, divide_by_active_ ? active_ : 0);
    if (module_->is_training()) broadcast_buffers(src);
    reducer_->take_part_with_zeros();
  }
  distributed::broadcast_coalesced(state_of(*module_), leader_);
}

}  // namespace gradus::nn::detail
