// All of gradus::distributed: the processes of a job, as torch.distributed.
#pragma once
#include <gradus/distributed/launch_environment.h>
#include <gradus/distributed/process_group.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace gradus::distributed {

struct InitOptions {
  /// "env://": what the launcher said, see launch_environment(). Or where the ranks meet: "tcp://host:port",
  /// of rank 0, or "file:///folder", an empty folder that all of them see.
  std::string init_method = "env://";
  int rank = -1, world_size = -1;  ///< -1: what the launcher said
  /// How long to wait for ranks that do not come, or do not take part in a collective. Default:
  /// GRADUS_DISTRIBUTED_TIMEOUT seconds, else 30 minutes as in PyTorch. A rank that is dead is noticed
  /// sooner.
  std::chrono::milliseconds timeout{0};
};

/// Connects this process with the others of its job: all of them must call it. Later collectives wait at most
/// for the timeout; a rank that ends ends them within a second, and one that does not answer (a machine that
/// is cut off, a process that was stopped) in GRADUS_DISTRIBUTED_SILENCE seconds (default 10; 0: never).
/// GRADUS_DISTRIBUTED_CHECK=1 makes ranks compare every collective before they begin it.
///
/// `backend`: "gloo", which takes tensors of every device, those of sim and cuda through copies on the cpu.
/// Throws E-INIT if there is a group already, or nobody said who this is; E-LAUNCH for a variable that makes
/// no sense; E-STORE where rank 0 cannot be reached or its port is in use; E-RENDEZVOUS naming the ranks that
/// are missing.
void init_process_group(std::string_view backend = "gloo", const InitOptions& options = {});

/// Waits for the other ranks to call it too, and disconnects. A process that ends without it has failed, as
/// the others see it.
void destroy_process_group();

bool is_initialized();
/// The group of all ranks; throws E-INIT where there is none.
ProcessGroup& default_group();
int get_rank();
int get_world_size();

// On the default group. They wait unless async_op. See ProcessGroup.
Work all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::sum, bool async_op = false);
Work broadcast(const Tensor& tensor, int src, bool async_op = false);
Work all_gather(const std::vector<Tensor>& outputs, const Tensor& tensor, bool async_op = false);
Work all_gather_into_tensor(const Tensor& output, const Tensor& input, bool async_op = false);
Work reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs, ReduceOp op = ReduceOp::sum,
                    bool async_op = false);
Work reduce_scatter_tensor(const Tensor& output, const Tensor& input, ReduceOp op = ReduceOp::sum,
                           bool async_op = false);
Work scatter(const Tensor& tensor, const std::vector<Tensor>& inputs = {}, int src = 0,
             bool async_op = false);
Work gather(const Tensor& tensor, const std::vector<Tensor>& outputs = {}, int dst = 0,
            bool async_op = false);
Work barrier(bool async_op = false);

}  // namespace gradus::distributed
