// The next batch is copied to the device while the current one is used.
#pragma once
#include <gradus/data/dataloader.h>
#include <gradus/runtime/device.h>

#include <iterator>
#include <memory>

namespace gradus {

/// `for (auto& [data, target] : DevicePrefetcher(loader, device))`: the loader's batches, in its order, on
/// `device`. Each is copied from pinned memory (the loader's with pin_memory, else a copy made here) on a
/// stream of its own, one batch ahead; the consumer's current stream waits for the copy, the host does not.
/// On the cpu it is the loader itself.
///
/// What the loader throws comes in its turn, behind the batches before it. Leaving early is safe. The loader
/// must outlive it.
class DevicePrefetcher {
 public:
  /// Throws E-DEVICE-UNAVAILABLE or E-DEVICE-ORDINAL.
  DevicePrefetcher(DataLoader& loader, Device device);

  /// Batches per epoch, as loader.size().
  int64_t size() const { return loader_.size(); }

  /// Walks one epoch, once.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Example;
    using difference_type = std::ptrdiff_t;
    using pointer = Example*;
    using reference = Example&;

    Iterator() = default;
    Iterator(DataLoader& loader, Device device);
    Example& operator*() const;
    Example* operator->() const { return &**this; }
    /// Gives the batch that was copied ahead and starts the copy of the next.
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.at_end(); }

   private:
    struct State;
    bool at_end() const;
    std::shared_ptr<State> state_;
  };

  /// Starts an epoch of the loader.
  Iterator begin() { return Iterator(loader_, device_); }
  std::default_sentinel_t end() const { return {}; }

 private:
  DataLoader& loader_;
  Device device_;
};

}  // namespace gradus
