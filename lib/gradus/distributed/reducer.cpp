#include <gradus/autograd/backward.h>
#include <gradus/distributed/distributed.h>
#include <gradus/distributed/reducer.h>
#include <gradus/ops/factories.h>
#include <gradus/tensor/grad_mode.h>

namespace gradus::distributed {

std::shared_ptr<Reducer> Reducer::create(const Named& parameters, const Options& options) {
  const std::shared_ptr<Reducer> made(new Reducer(parameters, options));
  made->register_hooks();
  return made;
}

Reducer::Reducer(const Named& parameters, const Options& options) : options_(options) {
  std::vector<Tensor> reversed;
  for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) reversed.push_back(p->second);
  for (const auto& [name, tensor] : parameters) parameters_.push_back({name, tensor, {}, 0});
  for (const auto& members : plan_buckets(reversed, options.first_bucket_bytes, options.bucket_bytes)) {
    std::vector<Tensor> tensors;
    for (const size_t i : members) tensors.push_back(reversed[i]);
    const Bucket bucket = make_bucket(tensors);
    for (size_t k = 0; k < members.size(); ++k) {
      Parameter& parameter = parameters_[parameters_.size() - 1 - members[k]];
      parameter.view = bucket.views[k];
      parameter.bucket = buckets_.size();
    }
    buckets_.push_back({bucket.flat, members.size(), members.size(), {}});
  }
}

void Reducer::register_hooks() {
  for (size_t i = 0; i < parameters_.size(); ++i)
    parameters_[i].tensor.register_post_accumulate_grad_hook([self = weak_from_this(), i](const Tensor&) {
      if (const auto reducer = self.lock()) reducer->on_gradient(i);
    });
}

void Reducer::prepare(bool sync, int divisor) {
  sync_ = sync;
  divisor_ = divisor;
  in_pass_ = false;  // also where the last pass ended with an exception
  for (const Parameter& p : parameters_)
    GRADUS_CHECK(p.tensor.dtype() == p.view.dtype() && p.tensor.device() == p.view.device(), "E-DDP",
                 "DistributedDataParallel: ", p.name, " was ", to_string(p.view.dtype()), " on ",
                 p.view.device(), " and is ", to_string(p.tensor.dtype()), " on ", p.tensor.device(), " now",
                 hint("move and convert the model before it is wrapped"));
}

void Reducer::on_gradient(size_t index) {
  if (!sync_) return;
  GRADUS_CHECK(!GradMode::is_enabled(), "E-DDP",
               "DistributedDataParallel: gradients that are averaged have no history, so backward() cannot "
               "create_graph",
               hint("call backward() within no_sync(), or on the inner module"));
  if (!in_pass_) begin_pass();
  Parameter& parameter = parameters_[index];
  GRADUS_CHECK(!parameter.ready, "E-DDP", "DistributedDataParallel: ", parameter.name,
               " got a gradient twice in one backward pass, and was averaged after the first",
               hint("is it used both in a checkpoint and elsewhere? Call that backward() within no_sync()"));
  move_into_bucket(parameter);
  mark_ready(parameter);
  launch_complete();
}

void Reducer::begin_pass() {
  in_pass_ = true;
  launched_ = 0;
  for (Parameter& parameter : parameters_) parameter.ready = false;
  for (Reduced& bucket : buckets_) bucket.missing = bucket.size;
  autograd::queue_callback([self = shared_from_this()] { self->finish_pass(); });
}

void Reducer::move_into_bucket(Parameter& p) {
  const Tensor& grad = p.tensor.grad();
  if (grad.raw_data() == p.view.raw_data()) return;  // what came was added to the bucket's
  p.view.copy_(grad);
  p.tensor.set_grad(p.view);
}

void Reducer::mark_ready(Parameter& parameter) {
  parameter.ready = true;
  --buckets_[parameter.bucket].missing;
}

// In the order of the buckets, which is the same on all ranks; that in which they are complete may not be.
void Reducer::launch_complete() {
  for (; launched_ < buckets_.size() && buckets_[launched_].missing == 0; ++launched_) {
    Reduced& bucket = buckets_[launched_];
    bucket.work = all_reduce(bucket.flat, divisor_ ? ReduceOp::sum : ReduceOp::avg, /*async_op=*/true);
  }
}

void Reducer::finish_pass() {
  in_pass_ = false;
  const std::vector<size_t> without = unused();
  if (options_.find_unused_parameters) return finish_with(without);
  if (!without.empty()) refuse_unused(without);
  wait();
}

std::vector<size_t> Reducer::unused() const {
  std::vector<size_t> which;
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (!parameters_[i].ready) which.push_back(i);
  return which;
}

void Reducer::refuse_unused(const std::vector<size_t>& which) const {
  std::string names;
  for (const size_t i : which) names += (names.empty() ? "" : ", ") + parameters_[i].name;
  GRADUS_FAIL(
      "E-DDP-UNUSED", "DistributedDataParallel: the backward pass of rank ", get_rank(),
      " gave no gradient to ", names, ", for which the other ranks may wait",
      hint("let the loss depend on all parameters, freeze these, or pass find_unused_parameters = true"));
}

// 1 where a parameter has a gradient: of this pass, or kept from an earlier one.
Tensor Reducer::ready_flags() const {
  const Tensor flags = zeros({static_cast<int64_t>(parameters_.size())}, {.dtype = kInt32});
  for (size_t i = 0; i < parameters_.size(); ++i)
    flags.data<int32_t>()[i] = parameters_[i].ready || parameters_[i].tensor.grad().defined();
  return flags;
}

// A parameter that some ranks used has the average on all; one that nobody used is left as it was.
void Reducer::finish_with(const std::vector<size_t>& without) {
  const Tensor used = ready_flags();
  for (const size_t i : without) {
    Parameter& p = parameters_[i];
    p.tensor.grad().defined() ? move_into_bucket(p) : static_cast<void>(p.view.zero_());
    mark_ready(p);
  }
  launch_complete();
  all_reduce(used, ReduceOp::max);
  wait();
  for (const size_t i : without)
    if (used.data<int32_t>()[i]) parameters_[i].tensor.set_grad(parameters_[i].view);
}

void Reducer::wait() {
  for (Reduced& bucket : buckets_) {
    bucket.work.wait();
    if (divisor_) bucket.flat.div_(divisor_);
  }
}

void Reducer::take_part_with_zeros() {
  const NoGradGuard no_grad;
  for (Parameter& parameter : parameters_) parameter.tensor.set_grad({});
  for (Reduced& bucket : buckets_) {
    bucket.flat.zero_();
    bucket.missing = 0;
  }
  launched_ = 0;
  launch_complete();
  if (options_.find_unused_parameters) all_reduce(ready_flags(), ReduceOp::max);
  wait();
}

}  // namespace gradus::distributed
