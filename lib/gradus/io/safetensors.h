// The safetensors format: a JSON header with names, dtypes, shapes and offsets, then the bytes of the
// tensors.
#pragma once
#include <gradus/tensor/state_dict.h>

#include <map>
#include <string>

namespace gradus {

/// Free text stored beside the tensors, sorted by key.
using Metadata = std::map<std::string, std::string>;

struct SafeTensors {
  StateDict tensors;  ///< in the order of the header
  Metadata metadata;
};

/// Reads a safetensors file onto the cpu. Dtypes: the eight of DType.
/// No length in the file is trusted: E-TRUNCATED where the file is shorter than it says; E-FORMAT for a
/// header that is no valid JSON of the right form, repeats a name, has overlapping or unused bytes, names a
/// dtype that Gradus lacks, or a bool that is neither 0 nor 1; E-SHAPE for a shape that overflows; all before
/// the tensors are allocated.
SafeTensors load_safetensors(const std::string& path);

/// Writes the file whole or not at all. Tensors of any device and strides are stored in row-major order, and
/// two names of one storage become two copies. The header keeps the given order; the data lies wide dtypes
/// first, so that every tensor is aligned. Same input, same bytes.
/// Throws E-ARG for a repeated or reserved name or text that is not UTF-8, E-FILE for what the disk refuses.
void save_safetensors(const std::string& path, const StateDict& tensors, const Metadata& metadata = {});

}  // namespace gradus
