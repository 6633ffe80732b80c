// Tests of several processes: each rank is this program again, running the same test.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace gradus::testing {

/// What became of a rank.
struct RankResult {
  int status =
      -1;  ///< 0: it passed; 99: it ended without; else its exit status, or 128 + the signal that ended it
  double seconds = 0;  ///< from the start of all ranks to its end
  std::string output;
};

/// How the ranks find each other, and what they are told.
struct RanksOptions {
  std::string
      init_method;     ///< "": a file store; "env://": rank 0 serves, at a free port; "none": body does it
  int timeout_s = 60;  ///< of collectives; the ranks are killed 60 s later
  std::vector<std::string> environment = {};  ///< more variables, "NAME=value"; they win over the usual ones
  int stuck = -1;                             ///< this rank does not end, and is killed when all others have
};

/// In the test's own process: starts `n` ranks and returns what became of them. In a rank: calls body(rank)
/// within a process group and ends the process, at the same call of run_ranks() in the test: those before it
/// are skipped. Ranks run parallel loops on one thread, and check collectives.
std::vector<RankResult> run_ranks(int n, const std::function<void(int)>& body,
                                  const RanksOptions& options = {});

/// As run_ranks(), and expects that every rank passes.
void in_ranks(int n, const std::function<void(int)>& body, const RanksOptions& options = {});

/// The message of the first line of `output` that begins with "ERROR ", which is how a rank's exception ends.
std::string error_in(const std::string& output);

/// A TCP port of this machine that nobody uses.
int free_port();

}  // namespace gradus::testing
