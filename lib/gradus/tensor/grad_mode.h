// Whether operations are recorded on the tape, per thread.
#pragma once

namespace gradus {

namespace detail {
inline thread_local bool grad_enabled = true;
inline thread_local bool inference_enabled = false;
}  // namespace detail

/// True where operations record gradients: by default, and outside NoGradGuard and InferenceMode.
struct GradMode {
  static bool is_enabled() { return detail::grad_enabled; }
  static void set_enabled(bool on) { detail::grad_enabled = on; }
};

/// `with torch.set_grad_enabled(on):`
class AutoGradMode {
 public:
  explicit AutoGradMode(bool on) : before_(detail::grad_enabled) { detail::grad_enabled = on; }
  ~AutoGradMode() { detail::grad_enabled = before_; }
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  bool before_;
};

/// `with torch.no_grad():`
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};
/// `with torch.enable_grad():`
struct EnableGradGuard : AutoGradMode {
  EnableGradGuard() : AutoGradMode(true) {}
};

/// `with torch.inference_mode():` no recording, and tensors made inside can never enter a graph.
class InferenceMode {
 public:
  InferenceMode() : no_grad_(false), before_(detail::inference_enabled) { detail::inference_enabled = true; }
  ~InferenceMode() { detail::inference_enabled = before_; }
  static bool is_enabled() { return detail::inference_enabled; }

 private:
  AutoGradMode no_grad_;
  bool before_;
};

}  // namespace gradus
