// Writing to a connection that the other end has closed. Internal to distributed/.
#pragma once
#include <pthread.h>

#include <csignal>

namespace gradus::distributed {

/// While it lives, this thread, and threads that it starts, get an error for that and not SIGPIPE, which ends
/// the process. (Gloo does not say so to the system at each write.)
class NoSigpipe {
 public:
  NoSigpipe() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~NoSigpipe() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t before_;
};

}  // namespace gradus::distributed
