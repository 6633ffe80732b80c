#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/rendezvous/context.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <gradus/distributed/gloo_backend.h>
#include <gradus/distributed/launch_environment.h>
#include <gradus/distributed/no_sigpipe.h>
#include <gradus/distributed/reduce.h>
#include <gradus/runtime/stream.h>
#include <gradus/tensor/views.h>

#include <cstring>
#include <optional>

namespace gradus::distributed {
namespace {

// Our store, as Gloo wants it, for the time in which it connects.
class GlooStore : public gloo::rendezvous::Store {
 public:
  GlooStore(distributed::Store& store, milliseconds timeout) : store_(store), timeout_(timeout) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set("gloo/" + key, {data.begin(), data.end()});
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get("gloo/" + key, timeout_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const milliseconds&) override {
    for (const std::string& key : keys) store_.get("gloo/" + key, timeout_);
  }

 private:
  distributed::Store& store_;
  milliseconds timeout_;
};

// Newer versions of Gloo take the store by shared pointer.
template <class Context>
void connect(Context& context, const std::shared_ptr<GlooStore>& store,
             std::shared_ptr<gloo::transport::Device>& device) {
  if constexpr (requires { context.connectFullMesh(*store, device); }) {
    context.connectFullMesh(*store, device);
  } else {
    context.connectFullMesh(store, device);
  }
}

// A tensor's elements on the cpu, in row-major order; what was written to them goes back with store().
class OnHost {
 public:
  explicit OnHost(const Tensor& tensor) : tensor_(tensor), host_(tensor.to(Device()).contiguous()) {}
  void store() {
    if (host_.is_same(tensor_)) return;
    tensor_.copy_(host_);
    current_stream(tensor_.device()).synchronize();
  }
  char* data() const { return static_cast<char*>(host_.raw_data()); }
  size_t bytes() const { return host_.nbytes(); }
  const Tensor& tensor() const { return host_; }

 private:
  Tensor tensor_, host_;
};

class Gloo : public Backend {
 public:
  Gloo(Store& store, int rank, int size, const std::string& address, milliseconds timeout)
      : context_(std::make_shared<gloo::rendezvous::Context>(rank, size)) {
    const NoSigpipe no_sigpipe;  // in the thread of Gloo's device
    gloo::transport::tcp::attr attr;
    attr.hostname = address;
    if (const auto interface = environment_variable("GLOO_SOCKET_IFNAME")) attr.iface = *interface;
    auto device = gloo::transport::tcp::CreateDevice(attr);
    context_->setTimeout(timeout);
    connect(*context_, std::make_shared<GlooStore>(store, timeout), device);
  }

  const char* name() const override { return "gloo"; }

  void all_reduce(const Tensor& tensor, ReduceOp op) override {
    OnHost host(tensor);
    if (host.bytes() == 0) return;
    const Reduction reduction = reduction_of(op, tensor.dtype());
    gloo::AllreduceOptions options(context_);
    options.setReduceFunction(reduction.combine);
    visit_dtype<kNumericTypes>(tensor.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      options.setOutput(reinterpret_cast<T*>(host.data()), host.bytes() / sizeof(T));
    });
    run(options, [](auto& o) { gloo::allreduce(o); });
    if (reduction.scale) reduction.scale(host.data(), tensor.numel(), context_->size);
    host.store();
  }

  void broadcast(const Tensor& tensor, int root) override {
    OnHost host(tensor);
    if (host.bytes() == 0) return;
    gloo::BroadcastOptions options(context_);
    options.setOutput(host.data(), host.bytes());
    options.setRoot(root);
    run(options, [](auto& o) { gloo::broadcast(o); });
    if (root != context_->rank) host.store();
  }

  void all_gather(const Tensor& output, const Tensor& input) override {
    OnHost out(output), in(input);
    if (in.bytes() == 0) return;
    gloo::AllgatherOptions options(context_);
    options.setInput(in.data(), in.bytes());
    options.setOutput(out.data(), out.bytes());
    run(options, [](auto& o) { gloo::allgather(o); });
    out.store();
  }

  // Gloo has no function for it: everything is reduced, and the other ranks' parts are thrown away.
  void reduce_scatter(const Tensor& output, const Tensor& input, ReduceOp op) override {
    const Tensor all = input.to(Device()).clone();
    all_reduce(all, op);
    OnHost mine(output);
    if (mine.bytes() == 0) return;
    std::memcpy(mine.data(), OnHost(all).data() + static_cast<size_t>(context_->rank) * mine.bytes(),
                mine.bytes());
    mine.store();
  }

  void scatter(const Tensor& output, const Tensor& input, int root) override {
    OnHost out(output);
    if (out.bytes() == 0) return;
    gloo::ScatterOptions options(context_);
    const std::optional<OnHost> in =
        root == context_->rank ? std::make_optional<OnHost>(input) : std::nullopt;
    if (in) {
      std::vector<char*> parts;
      for (int rank = 0; rank < context_->size; ++rank)
        parts.push_back(in->data() + static_cast<size_t>(rank) * out.bytes());
      options.setInputs(parts, out.bytes());
    }
    options.setOutput(out.data(), out.bytes());
    options.setRoot(root);
    run(options, [](auto& o) { gloo::scatter(o); });
    out.store();
  }

  void gather(const Tensor& output, const Tensor& input, int root) override {
    OnHost in(input);
    if (in.bytes() == 0) return;
    gloo::GatherOptions options(context_);
    std::optional<OnHost> out;
    if (root == context_->rank) {
      out.emplace(output);
      options.setOutput(out->data(), out->bytes());
    }
    options.setInput(in.data(), in.bytes());
    options.setRoot(root);
    run(options, [](auto& o) { gloo::gather(o); });
    if (out) out->store();
  }

  void barrier() override {
    gloo::BarrierOptions options(context_);
    run(options, [](auto& o) { gloo::barrier(o); });
  }

 private:
  template <class Options, class F>
  void run(Options& options, const F& collective) {
    options.setTag(++tag_);
    collective(options);
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;
  uint32_t tag_ = 0;
};

}  // namespace

std::unique_ptr<Backend> gloo_backend(Store& store, int rank, int size, const std::string& address,
                                      milliseconds timeout) {
  try {
    return std::make_unique<Gloo>(store, rank, size, address, timeout);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    GRADUS_FAIL("E-RENDEZVOUS", "gloo: rank ", rank, " at ", address,
                " cannot connect to the others: ", error.what(),
                hint("GLOO_SOCKET_IFNAME names the network interface to use, such as eth0"));
  }
}

}  // namespace gradus::distributed
