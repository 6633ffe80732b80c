#include <common/model_work.h>
#include <gradus/gradus.h>
#include <lessons/common/models.h>
#include <peers/cases.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace peers {
namespace {

using namespace gradus;

using work::labels;

constexpr int kCheckedSteps = 3;

Tensor sum_of(const Tensor& t) { return t.to(kFloat64).sum(); }
double size_of(const Tensor& t) { return sum_of(t.abs()).item<double>(); }

// The same weights on both sides: uniform, of variance 1 / (3 inputs); biases are small.
void fill_parameters(nn::Module& model) {
  NoGradGuard no_grad;
  uint32_t which = 100;
  for (Tensor& p : model.parameters()) {
    const float bound = p.dim() > 1 ? 1 / std::sqrt(static_cast<float>(p.numel() / p.size(0))) : 0.1f;
    p.copy_(numbers(p.sizes(), which++, bound));
  }
}

template <class Model>
struct Training {
  Training(Model made, const Parameters& p) : model(std::move(made)), optimizer(prepare(*model, p)) {}
  static std::vector<Tensor> prepare(nn::Module& model, const Parameters& p) {
    fill_parameters(model);
    model.to(p.device);
    return model.parameters();
  }
  template <class Loss>
  Tensor step(const Tensor& x, const Tensor& target, Loss loss_of) {
    optimizer.zero_grad();
    const Tensor loss = loss_of((*model)(x), target);
    loss.backward();
    optimizer.step();
    return loss;
  }
  Model model;
  optim::Adam optimizer;
};

const auto kCrossEntropy = [](const Tensor& y, const Tensor& t) { return cross_entropy(y, t); };
const auto kMse = [](const Tensor& y, const Tensor& t) { return mse_loss(y, t); };

// A few steps without dropout, whose masks differ, are checked; then steps are timed as they are in training.
template <class Model, class Loss>
Case train_step(Model model, const Parameters& p, const Tensor& x, const Tensor& target, Loss loss_of) {
  auto training = std::make_shared<Training<Model>>(std::move(model), p);
  const Tensor input = x.to(p.device), wanted = target.to(p.device);
  Case made;
  training->model->eval();
  for (int i = 0; i < kCheckedSteps; ++i)
    made.check.push_back(training->step(input, wanted, loss_of).template item<float>());
  training->model->train();
  made.call = [=] { training->step(input, wanted, loss_of); };
  return made;
}

Case cnn_step(const Parameters& p) {
  const int64_t batch = p.number("batch");
  const Tensor x = numbers({batch, 1, 28, 28}, 1).to(MemoryFormat::channels_last);
  return train_step(std::make_shared<lesson::CNN>(), p, x, labels(batch, 10), kCrossEntropy);
}
Case simple_net_step(const Parameters& p) {
  const int64_t batch = p.number("batch");
  return train_step(std::make_shared<lesson::SimpleNet>(), p, numbers({batch, 784}, 1), labels(batch, 10),
                    kCrossEntropy);
}
Case small_net_step(const Parameters& p) {
  const int64_t batch = p.number("batch");
  return train_step(lesson::small_net().ptr(), p, numbers({batch, 16}, 1), numbers({batch, 1}, 2), kMse);
}

// An epoch over images in memory; the order is drawn anew where it is timed, and kept where it is checked.
Case cnn_epoch(const Parameters& p) {
  const int64_t batch = p.number("batch"), images = p.number("images");
  const auto data = std::make_shared<TensorDataset>(numbers({images, 1, 28, 28}, 1), labels(images, 10));
  auto training =
      std::make_shared<Training<std::shared_ptr<lesson::CNN>>>(std::make_shared<lesson::CNN>(), p);
  const auto epoch = [=](bool shuffle) {
    DataLoader loader(data, {.batch_size = batch, .shuffle = shuffle});
    Tensor loss;
    for (auto& [x, target] : loader)
      loss =
          training->step(x.to(p.device).to(MemoryFormat::channels_last), target.to(p.device), kCrossEntropy);
    return loss;
  };
  training->model->eval();
  Case made{{epoch(false).item<float>()}, {}};
  training->model->train();
  made.call = [=] { epoch(true); };
  return made;
}

Case matmul_case(const Parameters& p) {
  const int64_t n = p.number("n");
  const DType dtype = p.word("dtype") == "bfloat16" ? kBFloat16 : kFloat32;
  const Tensor a = numbers({n, n}, 1).to(dtype).to(p.device), b = numbers({n, n}, 2).to(dtype).to(p.device);
  return {{size_of(matmul(a, b).cpu())}, [=] { matmul(a, b); }};
}
Case add_case(const Parameters& p) {
  const Tensor a = numbers({p.number("n")}, 1).to(p.device), b = numbers({p.number("n")}, 2).to(p.device);
  return {{size_of(add(a, b))}, [=] { add(a, b); }};
}
Case relu_case(const Parameters& p) {
  const Tensor a = numbers({p.number("n")}, 1).to(p.device);
  return {{size_of(relu(a))}, [=] { relu(a); }};
}
Case adam_case(const Parameters& p) {
  Tensor w = numbers({p.number("n")}, 1).to(p.device);
  w.requires_grad_().set_grad(numbers({p.number("n")}, 2).to(p.device));
  auto optimizer = std::make_shared<optim::Adam>(std::vector<Tensor>{w});
  for (int i = 0; i < kCheckedSteps; ++i) optimizer->step();
  return {{size_of(w.detach())}, [=] { optimizer->step(); }};
}

// An operation forward and backward: a new gradient for each leaf. `gradient` is the result's; none: 1.
Case differentiated(const std::vector<Tensor>& leaves, const std::function<Tensor()>& run,
                    const Tensor& gradient = {}) {
  const auto call = [=] {
    for (const Tensor& leaf : leaves) Tensor(leaf).set_grad({});
    run().backward(gradient);
  };
  call();
  Case made{{size_of(run().detach())}, call};
  for (const Tensor& leaf : leaves) made.check.push_back(size_of(leaf.grad()));
  return made;
}

Tensor images(const Shape& shape, uint32_t which, Device device) {
  return numbers(shape, which).to(MemoryFormat::channels_last).to(device);
}

Case softmax_cross_entropy(const Parameters& p) {
  const int64_t rows = p.number("rows"), classes = p.number("classes");
  Tensor x = numbers({rows, classes}, 1, 3).to(p.device);
  const Tensor target = labels(rows, classes).to(p.device);
  x.requires_grad_();
  return differentiated({x}, [=] { return cross_entropy(x, target); });
}
Case conv(const Parameters& p) {
  Tensor x = images({p.number("batch"), 32, 14, 14}, 1, p.device);
  Tensor w = numbers({64, 32, 3, 3}, 2, 0.06f).to(p.device), b = numbers({64}, 3, 0.1f).to(p.device);
  for (Tensor* t : {&x, &w, &b}) t->requires_grad_();
  const Tensor gradient = images({p.number("batch"), 64, 14, 14}, 4, p.device);
  return differentiated(
      {x, w, b}, [=] { return conv2d(x, w, b, {.padding = 1}); }, gradient);
}
Case batch_norm_case(const Parameters& p) {
  Tensor x = images({p.number("batch"), 64, 14, 14}, 1, p.device);
  Tensor w = numbers({64}, 2).to(p.device), b = numbers({64}, 3).to(p.device);
  const Tensor mean = zeros({64}, {.device = p.device}), var = ones({64}, {.device = p.device});
  for (Tensor* t : {&x, &w, &b}) t->requires_grad_();
  const Tensor gradient = images(x.sizes(), 4, p.device);
  return differentiated(
      {x, w, b}, [=] { return batch_norm(x, mean, var, w, b, {.training = true}); }, gradient);
}

// Pictures of bytes that are made into normalised numbers, one at a time: how a data set is often written.
class Pictures : public Dataset {
 public:
  explicit Pictures(int64_t n) : bytes_(((numbers({n, 1, 28, 28}, 1) + 1) * 127).to(kUInt8)) {}
  int64_t size() const override { return bytes_.size(0); }
  Example get(int64_t index) const override {
    BatchRequest request;
    request.indices = {&index, 1};
    return {transform_(bytes_.select(0, index), request), scalar_tensor(index % 10, {.dtype = kInt64})};
  }

 private:
  Tensor bytes_;
  Transform transform_ =
      transforms::Compose({transforms::ToTensor(), transforms::Normalize({0.2860f}, {0.3530f})});
};

Case loader(const Parameters& p) {
  const int64_t images = p.number("images");
  const auto workers = static_cast<int>(p.number("workers"));
  std::shared_ptr<const Dataset> data = std::make_shared<Pictures>(images);
  if (p.word("from") == "tensor")
    data = std::make_shared<TensorDataset>(numbers({images, 1, 28, 28}, 1), labels(images, 10));
  auto loader = std::make_shared<DataLoader>(
      data,
      DataLoaderOptions{
          .batch_size = 256, .shuffle = true, .num_workers = workers, .persistent_workers = workers > 0});
  double sum = 0, of_labels = 0;
  for (auto& [x, target] : *loader)
    sum += sum_of(x).item<double>(), of_labels += sum_of(target).item<double>();
  return {{sum, of_labels}, [=] {
            for (auto& [x, target] : *loader) (void)x;
          }};
}

// A folder of this process's own, which goes when it ends.
struct Scratch {
  Scratch() : folder((std::filesystem::temp_directory_path() / "gradus-peer-XXXXXX").string()) {
    GRADUS_CHECK(mkdtemp(folder.data()), "E-IO", "peer_worker: cannot make a folder like ", folder);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  std::string folder;
};

std::string scratch_file() {
  static const Scratch scratch;
  return scratch.folder + "/model.safetensors";
}

Case save(const Parameters& p) {
  auto model = std::make_shared<lesson::CNN>();
  fill_parameters(*model);
  const std::string file = scratch_file();
  const auto call = [=] { save_safetensors(file, model->state_dict()); };
  call();
  double sum = 0;
  for (const auto& [name, tensor] : load_safetensors(file).tensors) sum += size_of(tensor);
  (void)p;
  return {{sum}, call};
}
Case load(const Parameters& p) {
  Case made = save(p);
  made.call = [file = scratch_file()] { load_safetensors(file); };
  return made;
}
Case allocate(const Parameters& p) {
  const int64_t n = p.number("n");
  const auto made = [n, device = p.device] { return empty({n}, kFloat32, device); };
  return {{static_cast<double>(made().numel())}, [made] { made(); }};
}

}  // namespace

const std::map<std::string, std::function<Case(const Parameters&)>>& cases() {
  static const std::map<std::string, std::function<Case(const Parameters&)>> all = {
      {"cnn_step", cnn_step},
      {"cnn_epoch", cnn_epoch},
      {"simple_net_step", simple_net_step},
      {"small_net_step", small_net_step},
      {"matmul", matmul_case},
      {"add", add_case},
      {"relu", relu_case},
      {"adam", adam_case},
      {"softmax_cross_entropy", softmax_cross_entropy},
      {"conv", conv},
      {"batch_norm", batch_norm_case},
      {"loader", loader},
      {"save", save},
      {"load", load},
      {"allocate", allocate}};
  return all;
}

}  // namespace peers
