// Text for people: sizes in bytes. Independent of the locale.
#pragma once
#include <cstdint>
#include <string>

namespace gradus {

/// "512 bytes", "1.50 MiB", "6.00 GiB", as PyTorch writes sizes.
std::string format_bytes(int64_t bytes);

}  // namespace gradus
