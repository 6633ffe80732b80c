// What whoever started this process says of its place among the others.
#pragma once
#include <optional>
#include <string>

namespace gradus::distributed {

/// A process's place in a job, and where the job's processes meet.
struct LaunchEnvironment {
  int rank = -1, world_size = -1;
  int local_rank = 0, local_world_size = 1;  ///< among the processes of this machine
  std::string master_addr;                   ///< "" where nobody said
  int master_port = 29500;
  std::string source;  ///< "RANK", "OMPI_COMM_WORLD_RANK" or "SLURM_PROCID"; "" where nobody said
};

/// Reads RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun and
/// gradus-run set them; else what Open MPI's mpirun (OMPI_COMM_WORLD_*) or srun (SLURM_*) sets, where
/// MASTER_ADDR is 127.0.0.1 if all processes are on this machine. Under torchrun, whose own store has
/// MASTER_PORT, it is one more. Throws E-LAUNCH for what is no number, or no possible place.
LaunchEnvironment launch_environment();

/// The variable's value; none where it is not set or empty.
std::optional<std::string> environment_variable(const char* name);

/// The variable as a whole number; none where it is not set. Throws E-LAUNCH for anything else.
std::optional<int> environment_number(const char* name);

}  // namespace gradus::distributed
