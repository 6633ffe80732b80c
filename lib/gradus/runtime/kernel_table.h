// An op's kernels: a constant table in the op's own file, one function by device type and dtype.
// Not registered by static objects: those vanish silently when a static library is linked. See
// docs/architecture.md.
#pragma once
#include <gradus/base/dtype.h>
#include <gradus/base/version.h>
#include <gradus/runtime/device.h>
#include <gradus/runtime/stream.h>

#include <array>

namespace gradus {

template <class Args>
using KernelFn = void (*)(const Args&, const Stream&);

/// What host kernel K does, done by a GPU. Defined by the files of backends/cuda/ for each K and T that they
/// list: a kernel that a table wants and none of them has is an error of the linker.
template <class K, class T, class Args>
void cuda_kernel(const Args& args, const Stream& stream);

template <class Args>
class KernelTable {
 public:
  explicit constexpr KernelTable(const char* name) : name_(name) {}

  /// Fills the slots of one device type with one function that visits the dtype itself.
  constexpr KernelTable with(DeviceType device, DTypeSet types, KernelFn<Args> fn) const {
    KernelTable table = *this;
    for (int d = 0; d < kDTypeCount; ++d)
      if (types.has(static_cast<DType>(d))) table.fn_[static_cast<int>(device)][d] = fn;
    return table;
  }
  /// A host kernel: what cpu runs, sim runs too.
  constexpr KernelTable host(DTypeSet types, KernelFn<Args> fn) const {
    return with(DeviceType::cpu, types, fn).with(DeviceType::sim, types, fn);
  }
  /// A host kernel given as a functor template over the element type: `F::template run<T>(args, stream)`.
  template <class F, DTypeSet Types>
  constexpr KernelTable host() const {
    KernelTable table = *this;
    fill<F, Types, 0, false>(table);
    return table;
  }
  /// host<F, Types>(), and on cuda, where this build has it, cuda_kernel<F, T>.
  template <class F, DTypeSet Types>
  constexpr KernelTable everywhere() const {
    KernelTable table = *this;
    fill<F, Types, 0, kHasCuda>(table);
    return table;
  }
  /// The function that launches on cuda; without CUDA in this build it need not exist.
  template <KernelFn<Args> Fn>
  constexpr KernelTable cuda(DTypeSet types) const {
    if constexpr (kHasCuda)
      return with(DeviceType::cuda, types, Fn);
    else
      return *this;
  }

  constexpr const char* name() const { return name_; }
  /// The kernel; throws E-NOT-IMPLEMENTED naming op, device and dtype, and what there is.
  KernelFn<Args> get(DeviceType device, DType dtype) const {
    const KernelFn<Args> fn = fn_[static_cast<int>(device)][static_cast<int>(dtype)];
    if (!fn) [[unlikely]]
      refuse(device, dtype);
    return fn;
  }
  /// The dtypes that a device has a kernel for.
  DTypeSet supported(DeviceType device) const {
    DTypeSet set;
    for (int d = 0; d < kDTypeCount; ++d)
      if (fn_[static_cast<int>(device)][d]) set = set | dtypes(static_cast<DType>(d));
    return set;
  }

 private:
  template <class F, DTypeSet Types, int D, bool Cuda>
  static constexpr void fill(KernelTable& table) {
    if constexpr (D < kDTypeCount) {
      constexpr auto dtype = static_cast<DType>(D);
      if constexpr (Types.has(dtype)) {
        using T = typename ElementType<dtype>::type;
        table = table.host(dtypes(dtype), &F::template run<T>);
        if constexpr (Cuda) table = table.with(DeviceType::cuda, dtypes(dtype), &cuda_kernel<F, T, Args>);
      }
      fill<F, Types, D + 1, Cuda>(table);
    }
  }
  [[noreturn, gnu::cold]] void refuse(DeviceType device, DType dtype) const {
    const DTypeSet has = supported(device);
    GRADUS_FAIL("E-NOT-IMPLEMENTED", name_, ": not implemented for ", to_string(dtype), " on ",
                to_string(device), "; it has ", has.bits ? to_string(has) : std::string("no kernel there"),
                hint(has.bits ? "convert the input with .to(dtype)"
                              : "move the input to another device with .to(device)"));
  }

  const char* name_;
  std::array<std::array<KernelFn<Args>, kDTypeCount>, kDeviceTypeCount> fn_{};
};

}  // namespace gradus
