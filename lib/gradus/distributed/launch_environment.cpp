#include <gradus/base/error.h>
#include <gradus/distributed/launch_environment.h>

#include <charconv>
#include <cstdlib>

namespace gradus::distributed {
namespace {

struct Names {
  const char *rank, *world_size, *local_rank, *local_world_size;
};

// Who may have started us, in the order in which they are asked: gradus-run under srun is gradus-run.
constexpr Names kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};

void check(const LaunchEnvironment& found, const Names& names) {
  GRADUS_CHECK(found.world_size >= 1, "E-LAUNCH", names.rank, " is set but ", names.world_size,
               found.world_size == -1 ? " is not" : " is not positive", hint("start it with gradus-run"));
  GRADUS_CHECK(found.rank >= 0 && found.rank < found.world_size, "E-LAUNCH", names.rank, " is ", found.rank,
               ", but ", names.world_size, " is ", found.world_size,
               hint("ranks are 0 to ", found.world_size - 1, "; were more processes started than that?"));
  GRADUS_CHECK(found.master_port > 0 && found.master_port < 65536, "E-LAUNCH", "MASTER_PORT is ",
               found.master_port, ", which is no port");
}

}  // namespace

std::optional<std::string> environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? std::optional<std::string>(value) : std::nullopt;
}

std::optional<int> environment_number(const char* name) {
  const auto text = environment_variable(name);
  if (!text) return {};
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  GRADUS_CHECK(error == std::errc() && end == text->data() + text->size(), "E-LAUNCH", name, " is '", *text,
               "', which is no whole number");
  return value;
}

LaunchEnvironment launch_environment() {
  LaunchEnvironment found;
  found.master_addr = environment_variable("MASTER_ADDR").value_or("");
  found.master_port = environment_number("MASTER_PORT").value_or(found.master_port);
  if (environment_variable("TORCHELASTIC_USE_AGENT_STORE") == "True") ++found.master_port;
  for (const Names& names : kLaunchers) {
    const auto rank = environment_number(names.rank);
    if (!rank) continue;
    found.source = names.rank;
    found.rank = *rank;
    found.world_size = environment_number(names.world_size).value_or(-1);
    check(found, names);
    found.local_rank = environment_number(names.local_rank).value_or(found.rank);
    found.local_world_size = environment_number(names.local_world_size).value_or(found.world_size);
    const bool one_machine = found.local_world_size == found.world_size;
    if (found.master_addr.empty() && found.source != "RANK" && one_machine) found.master_addr = "127.0.0.1";
    break;
  }
  return found;
}

}  // namespace gradus::distributed
