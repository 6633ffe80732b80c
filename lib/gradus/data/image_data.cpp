#include <gradus/data/idx.h>
#include <gradus/data/image_data.h>
#include <gradus/tensor/views.h>

#include <cstdlib>
#include <filesystem>

namespace gradus {
namespace {

namespace fs = std::filesystem;
constexpr const char* kDebianDirectory = "/usr/share/datasets/fashion-mnist";

// `kind` is "images-idx3" or "labels-idx1".
std::string find_file(const std::string& directory, const std::string& split, std::string kind) {
  std::error_code ignored;
  const std::string name = split + "-" + kind + "-ubyte";
  kind[kind.find('-')] = '.';
  const std::string dotted = split + "-" + kind + "-ubyte";
  for (const std::string& candidate : {name, name + ".gz", dotted, dotted + ".gz"}) {
    const fs::path path = fs::path(directory) / candidate;
    if (fs::exists(path, ignored)) return path.string();
  }
  GRADUS_FAIL("E-DATA", directory, ": has no ", name, " or ", name, ".gz",
              hint("--data names the directory with the four IDX files of MNIST or Fashion-MNIST"));
}

ImageSet read_split(const std::string& directory, const std::string& split, int num_classes) {
  return read_image_set(find_file(directory, split, "images-idx3"),
                        find_file(directory, split, "labels-idx1"), num_classes);
}

}  // namespace

ImageSet read_image_set(const std::string& images_path, const std::string& labels_path, int num_classes) {
  const Tensor images = read_idx(images_path, 3), bytes = read_idx(labels_path, 1);
  const int64_t n = images.size(0);
  GRADUS_CHECK(n == bytes.size(0), "E-DATA", images_path, ": has ", n, " images, but ", labels_path, " has ",
               bytes.size(0), " labels: ", n, " vs ", bytes.size(0));
  Tensor labels = empty({n}, kInt64);
  for (int64_t i = 0; i < n; ++i) {
    const int label = bytes.data<uint8_t>()[i];
    GRADUS_CHECK(label < num_classes, "E-DATA", labels_path, ": label ", label, " at index ", i,
                 " is out of range; expected 0 to ", num_classes - 1);
    labels.data<int64_t>()[i] = label;
  }
  return {images.unsqueeze(1), labels};
}

ImageData load_image_data(const std::string& directory, int num_classes) {
  const std::string where = directory.empty() ? find_image_data() : directory;
  std::error_code ignored;
  GRADUS_CHECK(fs::is_directory(where, ignored), "E-DATA", where, ": is not a directory",
               hint("--data names the directory with the four IDX files of MNIST or Fashion-MNIST"));
  return {where, read_split(where, "train", num_classes), read_split(where, "t10k", num_classes)};
}

std::string find_image_data() {
  if (const char* named = std::getenv("GRADUS_DATA"); named && *named) return named;
  std::error_code ignored;
  if (fs::is_directory(kDebianDirectory, ignored)) return kDebianDirectory;
  GRADUS_FAIL(
      "E-DATA-NOT-FOUND", "Fashion-MNIST is not at ", kDebianDirectory,
      hint("install it with: sudo apt install dataset-fashion-mnist; or name a directory with MNIST's four "
           "IDX files by --data or GRADUS_DATA; --data made trains on digits drawn by code instead"));
}

}  // namespace gradus
