#include <runtime/device_contract.h>

#include <cmath>
#include <limits>
#include <stdexcept>

// There where CUDA runs on the CPU: makes its devices usable again.
extern "C" [[gnu::weak]] void gradus_cuda_on_host_forget_errors();

namespace gradus::contract {
namespace {

void affine(const AffineArgs& args, const Stream&) {
  if (args.gate) pass(*args.gate);
  for (int64_t i = 0; i < args.y.numel(); ++i)
    args.y.data<float>()[i] = args.a * args.x.data<float>()[i] + args.b;
}
constexpr auto kAffine =
    KernelTable<AffineArgs>("affine").host(dtypes(kFloat32), &affine).cuda<&affine_cuda>(dtypes(kFloat32));

void add(const AddArgs& args, const Stream&) {
  for (int64_t i = 0; i < args.y.numel(); ++i) args.y.data<float>()[i] += args.x.data<float>()[i];
}
constexpr auto kAdd =
    KernelTable<AddArgs>("add").host(dtypes(kFloat32), &add).cuda<&add_cuda>(dtypes(kFloat32));

void failing(const FailingArgs& args, const Stream&) {
  if (args.fails) throw std::runtime_error("index 7 is out of range");
}
constexpr auto kFailing = KernelTable<FailingArgs>("failing")
                              .host(dtypes(kFloat32), &failing)
                              .cuda<&failing_cuda>(dtypes(kFloat32));

}  // namespace

Gate::Gate(Device device)
    : device_(device), memory_(sizeof(GateState), device), state_(new (memory_.data()) GateState) {
  if (rules_of(device.type()).synchronous) open();
}

Gate::~Gate() {
  open();
  try {
    synchronize(device_);
  } catch (const Error&) {  // the test's own, and reported there
  }
}

void Gate::wait_until_reached() const {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!get(state_->reached) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(get(state_->reached)) << "no kernel came to the gate";
}

Buffer::Buffer(Device device, int64_t n, float value)
    : device_(device), n_(n), data_(runtime::backend(device).allocate(device.index(), bytes())) {
  GRADUS_ASSERT(data_);
  const std::vector<float> values(static_cast<size_t>(n), value);
  copy_in(Stream{device}, *this, values.data());
  Stream{device}.synchronize();
}

std::vector<float> Buffer::values() const {
  std::vector<float> values(static_cast<size_t>(n_));
  synchronize(device_);
  copy_out(Stream{device_}, values.data(), *this);
  Stream{device_}.synchronize();
  return values;
}

float Buffer::value() const {
  const std::vector<float> all = values();
  for (const float v : all)
    if (!(v == all[0])) return std::numeric_limits<float>::quiet_NaN();
  return all[0];
}

void launch_affine(const Stream& stream, const Buffer& x, const Buffer& y, float a, float b, Gate* gate) {
  launch(kAffine, kFloat32, stream, AffineArgs{x.arg(), y.arg(), a, b, gate ? gate->state() : nullptr});
}
void launch_add(const Stream& stream, void* x, const Buffer& y) {
  TensorArg in = y.arg();
  in.address = x;
  launch(kAdd, kFloat32, stream, AddArgs{in, y.arg()});
}
void launch_with_host_operand(const Stream& stream, const float* host, const Buffer& y) {
  TensorArg x = y.arg();
  x.address = const_cast<float*>(host);
  launch(kAffine, kFloat32, stream, AffineArgs{x, y.arg(), 0, 1, nullptr});
}
void launch_failing(const Stream& stream, const Buffer& y) {
  launch(kFailing, kFloat32, stream, FailingArgs{y.arg(), true});
}

void copy_in(const Stream& stream, const Buffer& to, const void* host) {
  runtime::backend(to.device()).copy(to.data(), to.device(), host, Device(), to.bytes(), stream);
}
void copy_out(const Stream& stream, void* host, const Buffer& from) {
  runtime::backend(from.device()).copy(host, Device(), from.data(), from.device(), from.bytes(), stream);
}
void copy_across(const Stream& stream, const Buffer& to, const Buffer& from) {
  runtime::backend(stream.device)
      .copy(to.data(), to.device(), from.data(), from.device(), from.bytes(), stream);
}

// Defaults, whatever the environment says; and the race detector watches that the tests themselves have none.
DeviceContract::DeviceContract() {
  if (GetParam() == DeviceType::sim)
    options_ = std::make_unique<sim::OptionsGuard>([](auto& o) { o = {.races = true}; });
  probe_stream_ = stream();
  probe_ = std::make_unique<Buffer>(device());
  probe_source_ = std::make_unique<Pinned>(device());
  if (GetParam() == DeviceType::cuda) load_kernels();
}
// CUDA loads a kernel when it is first launched, and may wait for all that run, at a closed gate too.
void DeviceContract::load_kernels() const {
  launch_affine(default_stream(), *probe_, *probe_, 1, 0);
  launch_add(default_stream(), probe_->data(), *probe_);
  launch(kFailing, kFloat32, default_stream(), FailingArgs{probe_->arg(), false});
  synchronize(device());
}
DeviceContract::~DeviceContract() { reset(); }

void DeviceContract::let_copies_pass() const {
  copy_in(probe_stream_, *probe_, probe_source_->data());
  probe_stream_.synchronize();
}

bool DeviceContract::reset() const {
  if (GetParam() == DeviceType::cuda) {
    if (!gradus_cuda_on_host_forget_errors) return false;
    gradus_cuda_on_host_forget_errors();
  } else if (GetParam() == DeviceType::sim) {
    for (int d = 0; d < device_count(DeviceType::sim); ++d) sim::reset_device(d);
  }
  return true;
}

}  // namespace gradus::contract
