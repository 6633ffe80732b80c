#include "curve.h"

#include <gradus/base/error.h>
#include <gradus/base/file.h>

namespace lesson {

Curve::Curve(std::string path)
    : path_(std::move(path)), text_("epoch,train_loss,train_accuracy,val_loss,val_accuracy\n") {}

void Curve::add(int64_t epoch, double train_loss, double train_accuracy, double val_loss,
                double val_accuracy) {
  if (path_.empty()) return;
  text_ += gradus::str(epoch, ",", train_loss, ",", train_accuracy, ",", val_loss, ",", val_accuracy, "\n");
  gradus::write_atomically(path_, [&](gradus::OutputFile& file) { file.write(text_); });
}

}  // namespace lesson
