// MNIST, Fashion-MNIST and any other set in the same four IDX files.
#pragma once
#include <gradus/tensor/tensor.h>

#include <string>

namespace gradus {

/// Images and what they show.
struct ImageSet {
  Tensor images;  ///< uint8 [N, 1, H, W]
  Tensor labels;  ///< int64 [N]
  int64_t size() const { return labels.size(0); }
};

struct ImageData {
  std::string directory;  ///< where it was found, for messages
  ImageSet train, test;
};

/// Reads one pair of IDX files, gzip data or not. Throws what read_idx() throws, and E-DATA naming both
/// counts where they differ, or index and value of the first label that is not below `num_classes`.
ImageSet read_image_set(const std::string& images_path, const std::string& labels_path, int num_classes = 10);

/// Reads the four files of a directory: (train|t10k)-images-idx3-ubyte and -labels-idx1-ubyte, each with or
/// without .gz (and with a dot in place of the second dash, as some mirrors name them). An empty `directory`
/// means find_image_data(). Throws E-DATA naming the directory and the file that is missing.
ImageData load_image_data(const std::string& directory = "", int num_classes = 10);

/// Where the data is when nobody says: $GRADUS_DATA if set, else where Debian's dataset-fashion-mnist puts
/// it. Throws E-DATA-NOT-FOUND, saying how to install it, if there is none.
std::string find_image_data();

}  // namespace gradus
