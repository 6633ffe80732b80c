#include <gradus/base/error.h>
#include <gradus/distributed/distributed.h>
#include <gradus/distributed/gloo_backend.h>
#include <gradus/distributed/rendezvous.h>

namespace gradus::distributed {
namespace {

constexpr milliseconds kTimeout = std::chrono::minutes(30);

// Never destroyed at the end of the process: that would wait for the others, who may be gone.
std::unique_ptr<ProcessGroup>& group() {
  static auto* const held = new std::unique_ptr<ProcessGroup>;
  return *held;
}

milliseconds seconds_of(const char* variable, milliseconds otherwise) {
  const auto seconds = environment_number(variable);
  return seconds ? std::chrono::seconds(*seconds) : otherwise;
}

Meeting meeting_of(const InitOptions& options) {
  const LaunchEnvironment launched = launch_environment();
  Meeting m{
      options.init_method, options.rank < 0 ? launched.rank : options.rank,
      options.world_size < 0 ? launched.world_size : options.world_size,
      options.timeout.count() > 0 ? options.timeout : seconds_of("GRADUS_DISTRIBUTED_TIMEOUT", kTimeout),
      seconds_of("GRADUS_DISTRIBUTED_SILENCE", std::chrono::seconds(10))};
  GRADUS_CHECK(
      m.rank >= 0 && m.world_size >= 1, "E-INIT",
      "init_process_group: nobody said which rank this is, and of how many: RANK and WORLD_SIZE are not set",
      hint("start the program with gradus-run, torchrun --no-python, mpirun or srun"));
  GRADUS_CHECK(m.rank < m.world_size, "E-INIT", "init_process_group: there is no rank ", m.rank, " among ",
               m.world_size);
  if (m.init_method != "env://") return m;
  GRADUS_CHECK(!launched.master_addr.empty(), "E-INIT",
               "init_process_group: environment variable MASTER_ADDR expected, but not set",
               hint("set it to the address of rank 0's machine, or start the program with gradus-run"));
  m.init_method = str("tcp://", launched.master_addr, ":", launched.master_port);
  return m;
}

Work waited(const Work& work, bool async_op) {
  if (!async_op) work.wait();
  return work;
}

}  // namespace

void init_process_group(std::string_view backend, const InitOptions& options) {
  GRADUS_CHECK(!group(), "E-INIT",
               "init_process_group: trying to initialize the default process group twice!",
               hint("call destroy_process_group() before"));
  GRADUS_CHECK(backend == "gloo", "E-ARG", "init_process_group: there is no backend '", backend, "'",
               hint("\"gloo\" is there"));
  const Meeting meeting = meeting_of(options);
  const Met met = meet(meeting);
  std::shared_ptr<Backend> gloo =
      gloo_backend(*met.store, meeting.rank, meeting.world_size, met.address, meeting.timeout);
  group() = std::make_unique<ProcessGroup>(
      met.store, std::move(gloo), meeting.rank, meeting.world_size,
      ProcessGroup::Options{meeting.timeout, meeting.silence,
                            environment_number("GRADUS_DISTRIBUTED_CHECK").value_or(0) != 0});
}

void destroy_process_group() { group().reset(); }
bool is_initialized() { return group() != nullptr; }

ProcessGroup& default_group() {
  GRADUS_CHECK(group(), "E-INIT", "Default process group has not been initialized",
               hint("please make sure to call init_process_group()"));
  return *group();
}

int get_rank() { return default_group().rank(); }
int get_world_size() { return default_group().size(); }

Work all_reduce(const Tensor& tensor, ReduceOp op, bool async_op) {
  return waited(default_group().all_reduce(tensor, op), async_op);
}
Work broadcast(const Tensor& tensor, int src, bool async_op) {
  return waited(default_group().broadcast(tensor, src), async_op);
}
Work all_gather(const std::vector<Tensor>& outputs, const Tensor& tensor, bool async_op) {
  return waited(default_group().all_gather(outputs, tensor), async_op);
}
Work all_gather_into_tensor(const Tensor& output, const Tensor& input, bool async_op) {
  return waited(default_group().all_gather_into_tensor(output, input), async_op);
}
Work reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs, ReduceOp op, bool async_op) {
  return waited(default_group().reduce_scatter(output, inputs, op), async_op);
}
Work reduce_scatter_tensor(const Tensor& output, const Tensor& input, ReduceOp op, bool async_op) {
  return waited(default_group().reduce_scatter_tensor(output, input, op), async_op);
}
Work scatter(const Tensor& tensor, const std::vector<Tensor>& inputs, int src, bool async_op) {
  return waited(default_group().scatter(tensor, inputs, src), async_op);
}
Work gather(const Tensor& tensor, const std::vector<Tensor>& outputs, int dst, bool async_op) {
  return waited(default_group().gather(tensor, outputs, dst), async_op);
}
Work barrier(bool async_op) { return waited(default_group().barrier(), async_op); }

}  // namespace gradus::distributed
