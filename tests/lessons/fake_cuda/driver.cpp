// An NVIDIA driver for tests: libcuda.so.1 and libnvidia-ml.so.1 in one, with the calls that the environment
// check makes. What it answers is in the environment: FAKE_CUDA (12020 for 12.2), FAKE_INIT (cuInit's
// result), FAKE_GPUS (in the machine) and FAKE_VISIBLE (those that CUDA_VISIBLE_DEVICES leaves).
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

constexpr int kOk = 0, kNotFound = 500;
constexpr size_t kGiB = size_t{1} << 30;

}  // namespace

extern "C" {

int cuDriverGetVersion(int* version) { return *version = setting("FAKE_CUDA", 12020), kOk; }
int cuInit(unsigned) { return setting("FAKE_INIT", kOk); }
int cuGetErrorName(int error, const char** name) {
  *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : error == 999 ? "CUDA_ERROR_UNKNOWN" : nullptr;
  return *name ? kOk : kNotFound;
}
int cuDeviceGetCount(int* count) { return *count = setting("FAKE_VISIBLE", setting("FAKE_GPUS", 2)), kOk; }
int cuDeviceGet(int* device, int index) { return *device = 70 + index, kOk; }  // handles are no indices
int cuDeviceGetName(char* name, int length, int device) {
  return std::snprintf(name, static_cast<size_t>(length), "Fake GPU %d", device - 70), kOk;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  return *value = attribute == 75 ? 9 : attribute == 76 ? 0 : -1, kOk;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return *bytes = (80 + device - 70) * kGiB, kOk; }
int cuDeviceGetUuid(unsigned char* bytes, int device) {
  std::memset(bytes, 0xab, 16);
  bytes[15] = static_cast<unsigned char>(device - 70);
  return kOk;
}

int nvmlInit_v2() { return kOk; }
int nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return std::snprintf(text, length, "535.104.05"), kOk;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  return *count = static_cast<unsigned>(setting("FAKE_GPUS", 2)), kOk;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  return *device = reinterpret_cast<void*>(static_cast<size_t>(index) + 1), kOk;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned length) {
  const size_t index = reinterpret_cast<size_t>(device) - 1;
  return std::snprintf(text, length, "GPU-abababab-abab-abab-abab-ababababab%02zx", index) < 0 ? kNotFound
                                                                                               : kOk;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* bytes) {
  const size_t index = reinterpret_cast<size_t>(device) - 1;
  bytes[0] = (80 + index) * kGiB, bytes[1] = (70 + index) * kGiB, bytes[2] = 10 * kGiB;
  return kOk;
}

}  // extern "C"
