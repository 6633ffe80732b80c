// The IDX format of MNIST and its relatives: a magic number, the sizes, then the values.
#pragma once
#include <gradus/tensor/tensor.h>

#include <string>

namespace gradus {

/// Reads an IDX file of bytes as a uint8 tensor of the shape in its header, on the cpu. Whether it is gzip
/// data is judged by its content, not its name; several gzip members are joined. `dims`, if not 0, is how
/// many dimensions it must have (3 for images, magic 2051; 1 for labels, magic 2049). The header's counts are
/// compared with the file's size before anything is allocated. Throws E-FILE, E-TRUNCATED (with the bytes
/// needed and found) or E-FORMAT (a web page, gzip within gzip, a wrong magic number, other types than bytes,
/// bytes left over), naming the file.
Tensor read_idx(const std::string& path, int dims = 0);

}  // namespace gradus
