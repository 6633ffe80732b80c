#include <gradus/backends/sim/fault_handler.h>
#include <gradus/runtime/sim.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstring>
#include <mutex>
#include <string_view>

namespace gradus::sim {
namespace {

// The handler may only read plain memory and call write(): no locks, no allocation. A record that is written
// at that moment may read wrongly, which costs a line of a message.
struct Record {
  std::atomic<uintptr_t> begin{0};
  size_t bytes = 0;
  const char* operation = nullptr;  // nullptr: the host asked for the address
  DType dtype = DType::float32;
  int dims = 0;
  int64_t sizes[kMaxDims] = {};
};
constexpr size_t kRecords = 2048;
Record records[2][kRecords];  // of tensors whose address the host asked for, and of operations' operands
std::mutex mutex;             // of those who write records

uintptr_t first_address = 0;
size_t device_bytes = 0;
int device_limit = 0;
struct sigaction before;

// Text in a buffer, without allocation.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    const size_t n = std::min(text.size(), sizeof buffer_ - used_);
    std::memcpy(buffer_ + used_, text.data(), n);
    used_ += n;
    return *this;
  }
  Line& operator<<(int64_t value) {
    char digits[24];
    return *this << std::string_view(
               digits, static_cast<size_t>(std::to_chars(digits, digits + 24, value).ptr - digits));
  }
  void print() const { [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, buffer_, used_); }

 private:
  char buffer_[1024];
  size_t used_ = 0;
};

const Record* find_record(uintptr_t address) {
  for (const auto& kind : records) {
    const Record* smallest = nullptr;
    for (const Record& r : kind) {
      const uintptr_t begin = r.begin.load(std::memory_order_relaxed);
      if (!begin || address < begin || address - begin >= r.bytes) continue;
      if (!smallest || r.bytes < smallest->bytes) smallest = &r;
    }
    if (smallest) return smallest;
  }
  return nullptr;
}

void explain(uintptr_t address) {
  Line line;
  line << "\ngradus: host code touched the memory of sim:"
       << static_cast<int64_t>((address - first_address) / device_bytes);
  if (const Record* r = find_record(address)) {
    line << ": a " << to_string(r->dtype) << " tensor of shape [";
    for (int d = 0; d < r->dims; ++d) (d ? line << ", " : line) << r->sizes[d];
    line << "]";
    if (r->operation) line << ", last used by '" << r->operation << "'";
  }
  line << ".\nThe host cannot read or write device memory: copy the tensor first with .cpu()\n";
  line.print();
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool ours =
      address >= first_address && address - first_address < device_bytes * static_cast<size_t>(device_limit);
  if (ours) explain(address);
  if (before.sa_flags & SA_SIGINFO) return before.sa_sigaction(signal, info, context);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) return before.sa_handler(signal);
  ::sigaction(signal, &before, nullptr);  // the access is tried again and ends the program
}

}  // namespace

void install_fault_handler(uintptr_t begin, size_t bytes_per_device, int devices) {
  first_address = begin;
  device_bytes = bytes_per_device;
  device_limit = devices;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigaction(SIGSEGV, &action, &before);
}

void remember_tensor(const TensorArg& t, const char* operation) {
  if (!t.present() || t.numel() == 0) return;
  const auto address = reinterpret_cast<uintptr_t>(t.address);
  std::lock_guard lock(mutex);
  Record& r = records[operation ? 1 : 0][(address >> 9) % kRecords];
  r.begin.store(0, std::memory_order_relaxed);
  r.bytes = t.extent();
  r.operation = operation;
  r.dtype = t.dtype;
  r.dims = t.dim();
  for (int d = 0; d < t.dim(); ++d) r.sizes[d] = t.sizes[d];
  r.begin.store(address, std::memory_order_relaxed);
}

void detail::note_host_pointer(const TensorArg& tensor) { remember_tensor(tensor, nullptr); }

}  // namespace gradus::sim
