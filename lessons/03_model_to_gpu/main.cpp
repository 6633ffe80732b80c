// Lesson 03: a model on a device.
//
// You will learn what a module is made of, what model.to(device) moves and what it leaves behind, whether the
// optimizer must be made before or after, what train(), eval(), no_grad and inference_mode do, and how to
// save and load weights.
//
// Without a GPU it takes the simulated device.
//
// Run: ./gradus learn 03          or: build/release/lessons/03_model_to_gpu --device sim
#include <gradus/gradus.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "../common/app.h"
#include "../common/models.h"

using namespace gradus;

// [snippet parameters]
void parameters(Device device) {
  lesson::section(1, "A model and its parameters");
  lesson::SimpleNet model;
  model.to(device);
  int64_t total = 0;
  for (const auto& [name, parameter] : model.named_parameters()) {
    std::printf("%-12s %-10s %s\n", name.c_str(), to_string(parameter.sizes()).c_str(),
                to_string(parameter.device()).c_str());
    total += parameter.numel();
  }
  std::printf("parameters: %ld\n", total);
  lesson::result("parameters", static_cast<double>(total));

  std::printf("output: %s\n", to_string(model(randn({32, 784}).to(device)).sizes()).c_str());
}
// [/snippet parameters]

// [snippet registered]
// A layer's tensors are found only if they were registered.
struct Scaled : nn::Module {
  nn::Linear fc = register_module("fc", nn::Linear(4, 2));
  Tensor scale = register_buffer("scale", full({2}, 10.0));  // saved and moved with the model
  Tensor forgotten = full({2}, 10.0);                        // a plain member: the model does not know it
  std::vector<nn::Linear> hidden = {nn::Linear(2, 2)};       // nor this layer
  Tensor forward(const Tensor& x) override { return fc(x) * scale; }
};

void registered(Device device) {
  lesson::section(2, "What to() moves: parameters and buffers that were registered");
  Scaled model;
  model.to(device);
  auto show = [](const char* what, const Tensor& tensor) {
    std::printf("%-30s%s\n", what, to_string(tensor.device()).c_str());
  };
  show("fc.weight:", model.fc->weight);
  show("scale (buffer):", model.scale);
  show("forgotten (plain member):", model.forgotten);
  show("hidden[0] (in a std::vector):", model.hidden[0]->weight);
  int64_t moved = 0;
  std::printf("state_dict:");
  for (const auto& [name, tensor] : model.state_dict()) {
    std::printf(" %s", name.c_str());
    moved += tensor.device() == device;
  }
  std::printf("\n");
  lesson::result("C09_registered", static_cast<double>(model.state_dict().size()));
  lesson::result("C09_registered_and_moved", static_cast<double>(moved));

  const Tensor y = model(ones({1, 4}, {.device = device}));
  if (device.is_cpu()) {
    std::printf("On the cpu nothing is left behind: there is nowhere to move to.\n");
    return;
  }
  for (const auto& meet : {std::function([&] { mul(y, model.forgotten); }), {[&] { model.hidden[0](y); }}})
    lesson::result("C10_is_a_mismatch", lesson::print_error(meet) == "E-DEVICE-MISMATCH");
}
// [/snippet registered]

// [snippet optimizer]
// The parameters keep their identity when they move, so an optimizer made before sees the moved ones.
double train_ten_steps(bool optimizer_first, Device device) {
  manual_seed(0);
  lesson::SimpleNet model;
  auto make = [&] { return std::make_unique<optim::Adam>(model.parameters()); };
  std::unique_ptr<optim::Adam> optimizer = optimizer_first ? make() : nullptr;
  model.to(device);
  if (!optimizer) optimizer = make();
  const Tensor x = randn({64, 784}).to(device), labels = randint(10, {64}).to(device);
  Tensor loss;
  for (int step = 0; step < 10; ++step) {
    optimizer->zero_grad();
    loss = cross_entropy(model(x), labels);
    loss.backward();
    optimizer->step();
  }
  return loss.item<double>();
}

void optimizer_order(Device device) {
  lesson::section(3, "The optimizer: before or after to()?");
  const double before = train_ten_steps(true, device), after = train_ten_steps(false, device);
  std::printf("loss after 10 steps, optimizer made before to(): %.6f\n", before);
  std::printf("loss after 10 steps, optimizer made after to():  %.6f\n", after);
  std::printf("equal: %s\n", before == after ? "yes" : "no");
  lesson::result("C11_loss_optimizer_before_to", before);
  lesson::result("C11_loss_optimizer_after_to", after);
}
// [/snippet optimizer]

// [snippet modes]
void modes(Device device) {
  lesson::section(4, "train, eval, no_grad, inference_mode");
  nn::Sequential model(nn::Linear(8, 8), nn::Dropout(0.5));
  model->to(device);
  const Tensor x = ones({1, 8}).to(device);
  std::printf("train(): two passes equal: %s\n", equal(model(x), model(x)) ? "yes" : "no");
  model->eval();
  std::printf("eval():  two passes equal: %s\n", equal(model(x), model(x)) ? "yes" : "no");
  std::printf("eval() still records gradients: %s\n", model(x).requires_grad() ? "yes" : "no");
  {
    NoGradGuard no_grad;
    std::printf("no_grad records gradients: %s\n", model(x).requires_grad() ? "yes" : "no");
  }
  Tensor y;
  {
    InferenceMode inference;
    y = model(x);
  }
  std::printf("inference_mode: ");
  lesson::print_error([&] { y.requires_grad_(); });
}
// [/snippet modes]

// [snippet state_dict]
void save_and_load(Device device) {
  lesson::section(5, "Saving and loading weights");
  const auto path =
      (std::filesystem::temp_directory_path() / str("gradus_lesson03_", ::getpid(), ".safetensors")).string();
  lesson::SimpleNet trained, fresh;
  trained.to(device);
  save_safetensors(path, trained.state_dict());
  const SafeTensors file = load_safetensors(path);
  fresh.load_state_dict(file.tensors);
  fresh.to(device);
  const Tensor x = randn({4, 784}).to(device);
  std::printf("outputs equal after load: %s\n", equal(trained(x), fresh(x)) ? "yes" : "no");
  std::printf("file: %zu tensors, %ju bytes\n", file.tensors.size(), std::filesystem::file_size(path));
  std::filesystem::remove(path);
  nn::Sequential other(nn::Linear(784, 256));
  lesson::print_error([&] { other->load_state_dict(file.tensors); });
}
// [/snippet state_dict]

int main(int argc, char** argv) {
  lesson::Flags flags{.unused = "--epochs, --batch-size, --data and --quick"};
  return lesson::run(argc, argv, "Lesson 03: a model on a device", flags, [&] {
    const Device device = lesson::accelerator(flags);
    parameters(device);
    registered(device);
    optimizer_order(device);
    modes(device);
    save_and_load(device);
  });
}
