#include <gradus/io/environment_json.h>
#include <gradus/runtime/diagnosis.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

namespace gradus {
namespace {

using Json = nlohmann::ordered_json;

Json text(const std::string& value) { return value.empty() ? Json() : Json(value); }
Json version(int cuda) { return cuda > 0 ? Json(cuda_version_text(cuda)) : Json(); }
Json capability(int major, int minor) { return major > 0 ? Json(str(major, ".", minor)) : Json(); }

Json to_json(const BuildFacts& b) {
  return {{"version", b.version},   {"build_type", b.type},     {"sanitizer", text(b.sanitizer)},
          {"compiler", b.compiler}, {"onednn", text(b.onednn)}, {"openmp", text(b.openmp)}};
}

Json to_json(const HostFacts& h) {
  return {{"cpu", h.cpu},
          {"vector_units", text(h.vector_units)},
          {"cores", h.cores},
          {"memory_total", h.total_memory},
          {"memory_free", h.free_memory},
          {"os", text(h.os)},
          {"kernel", text(h.kernel)},
          {"governor", text(h.governor)},
          {"load", h.load}};
}

Json to_json(const DeviceFacts& d) {
  return {{"device", to_string(d.device)},
          {"name", d.properties.name},
          {"simulated", d.device.is_sim()},
          {"memory_total", d.memory.total},
          {"memory_free", d.memory.free},
          {"multiprocessors", d.properties.multiprocessors},
          {"capability", capability(d.properties.capability_major, d.properties.capability_minor)}};
}

// Results are shared; whose home directory a library lies in is nobody's business.
std::string without_home(const std::string& path) {
  const char* home = std::getenv("HOME");
  if (!home || std::string_view(home).size() < 2) return path;
  const std::string prefix = str(home, "/");
  return path.starts_with(prefix) ? str("~/", path.substr(prefix.size())) : path;
}

Json to_json(const LibraryFacts& l) {
  return {{"file", l.file},
          {"path", text(without_home(l.path))},
          {"version", text(l.version)},
          {"error", text(l.error)}};
}

Json to_json(const GpuFacts& g) {
  return {{"name", g.name},
          {"capability", capability(g.capability_major, g.capability_minor)},
          {"memory_total", g.total_memory},
          {"memory_free", g.free_memory > 0 ? Json(g.free_memory) : Json()}};
}

Json to_json(const Finding& f) {
  return {{"code", f.code}, {"severity", to_string(f.severity)}, {"cause", f.cause}, {"remedy", f.remedy}};
}

template <class T>
Json list(const std::vector<T>& values) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(to_json(value));
  return array;
}

Json to_json(const CudaFacts& c) {
  const std::vector<Finding> findings = diagnose(c);
  const bool built = c.build.has_cuda();
  Json libraries = Json::object();
  for (const LibraryFacts* l : {&c.driver, &c.nvml, &c.cudart, &c.cublas, &c.cudnn, &c.nccl})
    libraries[l->name] = to_json(*l);
  return {{"usable", is_usable(findings)},
          {"built_with", version(c.build.runtime_version)},
          {"built_for", built ? Json(c.build.architectures) : Json()},
          {"driver_supports", version(c.driver_version)},
          {"driver_release", text(c.driver_release)},
          {"cuda_visible_devices", c.visible_devices ? Json(*c.visible_devices) : Json()},
          {"gpus_in_machine", c.physical_count >= 0 ? Json(c.physical_count) : Json()},
          {"gpus", list(c.devices)},
          {"libraries", libraries},
          {"findings", list(findings)}};
}

}  // namespace

std::string environment_json(const Environment& e) {
  const Json record = {{"gradus", to_json(e.build)},
                       {"host", to_json(e.host)},
                       {"devices", list(e.devices)},
                       {"cuda", to_json(e.cuda)}};
  // Names and messages come from elsewhere and need not be UTF-8.
  return record.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gradus
