#include <common/model_work.h>
#include <common/train_steps.h>
#include <lessons/common/models.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace floors {
namespace {

using namespace gradus;

// Any model with a fixed batch and Adam.
template <class Model, class LossFunction>
class LibraryStep : public LibraryTrainStep {
 public:
  LibraryStep(Model model, Tensor x, Tensor target, LossFunction loss)
      : model_(std::move(model)),
        optimizer_(model_->parameters()),
        x_(std::move(x)),
        target_(std::move(target)),
        loss_(loss) {}

  Tensor step() override {
    optimizer_.zero_grad();
    const Tensor loss = loss_((*model_)(x_), target_);
    loss.backward();
    optimizer_.step();
    return loss;
  }

 private:
  Model model_;
  optim::Adam optimizer_;
  Tensor x_, target_;
  LossFunction loss_;
};

template <class Model, class LossFunction>
std::unique_ptr<LibraryTrainStep> library_step(Model model, Tensor x, Tensor target, LossFunction loss) {
  return std::make_unique<LibraryStep<Model, LossFunction>>(std::move(model), std::move(x), std::move(target),
                                                            loss);
}

auto cross_entropy_loss = [](const Tensor& y, const Tensor& t) { return cross_entropy(y, t); };
auto mse = [](const Tensor& y, const Tensor& t) { return mse_loss(y, t); };

}  // namespace

std::unique_ptr<LibraryTrainStep> library_cnn(int64_t batch, bool channels_last, Device device) {
  manual_seed(0);
  Tensor x = randn({batch, 1, 28, 28});
  if (channels_last) x = x.to(MemoryFormat::channels_last);
  auto model = std::make_shared<lesson::CNN>();
  model->to(device);
  return library_step(model, x.to(device), work::labels(batch).to(device), cross_entropy_loss);
}
std::unique_ptr<TrainStep> library_simple_net(int64_t batch) {
  manual_seed(0);
  return library_step(std::make_shared<lesson::SimpleNet>(), randn({batch, 784}), work::labels(batch),
                      cross_entropy_loss);
}
std::unique_ptr<TrainStep> library_small_net(int64_t batch) {
  manual_seed(0);
  return library_step(lesson::small_net().ptr(), randn({batch, 16}), randn({batch, 1}), mse);
}

TrainStep& prepared(const char* name, int threads, const std::function<std::unique_ptr<TrainStep>()>& make) {
  static std::map<std::pair<std::string, int>, std::unique_ptr<TrainStep>> steps;
  set_num_threads(threads);
  auto& step = steps[{name, threads}];
  if (!step) {
    step = make();
    const float first = step->run();
    for (int i = 0; i < 5; ++i) step->run();
    const float later = step->run();
    if (!(later < first)) {
      std::fprintf(stderr, "%s: the loss does not fall: %g, then %g\n", name, first, later);
      std::exit(1);
    }
  }
  return *step;
}

}  // namespace floors
