// The header of a safetensors file, as text and as a list. Internal to io/.
#pragma once
#include <gradus/base/dtype.h>
#include <gradus/base/shape.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gradus::detail {

struct SafeTensorsEntry {
  std::string name;
  DType dtype = DType::float32;
  Shape sizes;
  int64_t begin = 0, end = 0;  // in bytes, from the first byte behind the header
};

struct SafeTensorsHeader {
  std::vector<SafeTensorsEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// Parses and checks everything but the offsets, which need the size of the data. `path` is for messages.
SafeTensorsHeader parse_safetensors_header(std::string_view json, const std::string& path);

/// Throws unless the entries cover bytes 0 to `data_bytes` without overlap or gap.
void check_safetensors_offsets(const SafeTensorsHeader& header, int64_t data_bytes, const std::string& path);

/// The JSON text, padded with spaces to a multiple of 8 bytes.
std::string format_safetensors_header(const SafeTensorsHeader& header);

}  // namespace gradus::detail
