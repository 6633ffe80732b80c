// Hostile and harmless files, made byte by byte.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace gradus::testing {

inline std::string little_endian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i);
  return out;
}

/// The bytes of a safetensors file with the header `json`.
inline std::string safetensors(std::string_view json, std::string_view data = "") {
  return little_endian(json.size(), 8) + std::string(json) + std::string(data);
}

/// The header of one tensor named "w".
inline std::string entry(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return "{\"w\":{\"dtype\":\"" + std::string(dtype) + "\",\"shape\":" + std::string(shape) +
         ",\"data_offsets\":" + std::string(offsets) + "}}";
}

inline std::string from_hex(std::string_view hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}

inline std::string raw_bytes(const void* data, size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}

/// The bytes of an npy file, its header padded as numpy pads it.
inline std::string npy(int version, std::string dict, std::string_view data = "") {
  const size_t before = version == 1 ? 10 : 12;
  while ((before + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  return std::string("\x93NUMPY") + static_cast<char>(version) + '\0' +
         little_endian(dict.size(), version == 1 ? 2 : 4) + dict + std::string(data);
}

}  // namespace gradus::testing
