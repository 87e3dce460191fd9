#include "plimsoll/device/opencl/opencl_kind.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/opencl/opencl_backend.h"
#include "plimsoll/memory/system_memory.h"

namespace plimsoll::internal {
namespace {

struct Machine {
  std::vector<PhysicalDevice> devices;
  std::vector<OpenclDevice> handles;  // One for each.
  std::string note;
};

std::string text_of(const OpenclApi& cl, cl_device_id device, cl_device_info what) {
  char text[256] = {};
  if (cl.clGetDeviceInfo(device, what, sizeof(text) - 1, text, nullptr) != CL_SUCCESS) return "";
  return text;
}
template <class T>
T number_of(const OpenclApi& cl, cl_device_id device, cl_device_info what) {
  T value{};
  cl.clGetDeviceInfo(device, what, sizeof(value), &value, nullptr);
  return value;
}

// Asked once, at the start: PoCL's memory size changes while the machine runs.
OpenclDevice describe(const OpenclApi& cl, cl_platform_id platform, cl_device_id id) {
  OpenclDevice device;
  device.platform = platform;
  device.id = id;
  const auto type = number_of<cl_device_type>(cl, id, CL_DEVICE_TYPE);
  device.is_gpu = (type & CL_DEVICE_TYPE_GPU) != 0;
  device.is_processor = (type & CL_DEVICE_TYPE_CPU) != 0;
  device.name = text_of(cl, id, CL_DEVICE_NAME);
  device.driver = text_of(cl, id, CL_DEVICE_VERSION) + ", driver " + text_of(cl, id, CL_DRIVER_VERSION);
  device.most_bytes = number_of<cl_ulong>(cl, id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  device.memory_bytes = number_of<cl_ulong>(cl, id, CL_DEVICE_GLOBAL_MEM_SIZE);
  device.has_local_memory = number_of<cl_device_local_mem_type>(cl, id, CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
  device.most_group = number_of<std::size_t>(cl, id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  device.units = number_of<cl_uint>(cl, id, CL_DEVICE_MAX_COMPUTE_UNITS);
  if (device.is_processor) device.memory_bytes = std::min(device.memory_bytes, read_system_memory().capacity());
  return device;
}

Machine look() {
  Machine found;
  const OpenclApi* const cl = OpenclApi::load();
  if (!cl) {
    found.note = OpenclApi::why_not();
    return found;
  }
  const BlockSignals blocked;
  cl_platform_id platforms[16];
  cl_uint count = 0;
  const cl_int code = cl->clGetPlatformIDs(16, platforms, &count);
  if (code != CL_SUCCESS || count == 0) {
    found.note = "OpenCL has no platform; install pocl-opencl-icd for the processor, or a GPU's driver";
    return found;
  }
  std::size_t gpus = 0, others = 0;
  for (cl_uint i = 0; i < std::min<cl_uint>(count, 16); ++i) {
    cl_device_id ids[16];
    cl_uint devices = 0;
    if (cl->clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 16, ids, &devices) != CL_SUCCESS) continue;
    for (cl_uint d = 0; d < std::min<cl_uint>(devices, 16); ++d) {
      OpenclDevice device = describe(*cl, platforms[i], ids[d]);
      if (device.memory_bytes == 0) continue;
      const std::string type = device.is_gpu ? "GPU" : "OPENCL";
      found.devices.push_back(
          {fmt::format("{}:{}", type, device.is_gpu ? gpus++ : others++), type, device.memory_bytes});
      found.note += fmt::format("{}{} is {} ({})", found.note.empty() ? "" : "; ", found.devices.back().name,
                                device.name, device.driver);
      found.handles.push_back(std::move(device));
    }
  }
  if (found.devices.empty())
    found.note = "OpenCL's platforms have no device; install pocl-opencl-icd for the processor, or a GPU's driver";
  return found;
}

const Machine& machine() {
  static const Machine& found = *new Machine(look());
  return found;
}

std::unique_ptr<DeviceBackend> make_opencl(const PhysicalDevice& device) {
  const Machine& found = machine();
  for (std::size_t i = 0; i < found.devices.size(); ++i)
    if (found.devices[i].name == device.name)
      return std::make_unique<OpenclBackend>(*OpenclApi::load(), found.handles[i], device.name);
  throw NotFound(fmt::format("device \"{}\": OpenCL does not have it", device.name));
}

}  // namespace

DeviceKind opencl_kind() {
  return {.name = "OpenCL",
          .types = {"GPU", "OPENCL"},
          .find = [] { return machine().devices; },
          .make = make_opencl,
          .note = [] { return machine().note; },
          .waits_to_be_asked = true};
}

}  // namespace plimsoll::internal
