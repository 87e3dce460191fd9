// DLPack: tensors to and from every library that speaks it, without a copy.
//
// The structures are those of the specification (dmlc.github.io/dlpack), version 1: its layout is what is exchanged.
#include <fmt/format.h>

#include <cstdint>

#include "exchange.h"

namespace binding {
namespace {

struct DlDevice {
  std::int32_t type, id;
};
struct DlType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  std::int32_t rank;
  DlType type;
  std::int64_t *shape, *strides;  // Strides in elements; none: dense.
  std::uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(DlVersioned*);
  std::uint64_t flags;
  DlTensor tensor;
};

constexpr std::int32_t kCpu = 1;
constexpr std::uint64_t kReadOnly = 1, kIsCopied = 2;
constexpr std::uint8_t kInteger = 0, kUnsigned = 1, kFloat = 2, kBfloat = 4, kBool = 6;
constexpr const char *kPlain = "dltensor", *kVersioned = "dltensor_versioned";

DlType type_of(pl::DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * pl::size_of(dtype));
  if (dtype == pl::boolean) return {kBool, bits, 1};
  if (dtype == pl::u8) return {kUnsigned, bits, 1};
  if (dtype == pl::bf16) return {kBfloat, bits, 1};
  return {pl::is_floating(dtype) ? kFloat : kInteger, bits, 1};
}

pl::DType dtype_of(const DlType& type) {
  if (type.lanes == 1)
    for (std::size_t i = 0; i < pl::kNumDTypes; ++i) {
      const DlType ours = type_of(static_cast<pl::DType>(i));
      if (ours.code == type.code && ours.bits == type.bits) return static_cast<pl::DType>(i);
    }
  throw nb::buffer_error(
      fmt::format("from_dlpack: elements of DLPack's kind {} with {} bits and {} lanes are not offered", type.code,
                  type.bits, type.lanes)
          .c_str());
}

// What is handed out: the structure, and the bytes it points to.
template <class Managed>
struct Export {
  explicit Export(const pl::Tensor& x) : pinned(x) {
    shape.assign(x.shape().begin(), x.shape().end());
    strides.resize(shape.size());
    std::int64_t stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) strides[axis] = stride;
    managed.tensor = {const_cast<void*>(pinned.data),
                      {kCpu, 0},
                      static_cast<std::int32_t>(shape.size()),
                      type_of(x.dtype()),
                      shape.data(),
                      strides.data(),
                      0};
    managed.context = this;
    managed.deleter = [](Managed* self) { delete static_cast<Export*>(self->context); };
  }
  Managed managed{};
  Pinned pinned;
  std::vector<std::int64_t> shape, strides;
};

// Of a capsule that nobody took.
template <class Managed>
void drop_capsule(PyObject* capsule) {
  const char* name = PyCapsule_GetName(capsule);
  if (name == nullptr || std::string_view(name).starts_with("used")) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}

template <class Managed>
nb::object capsule_of(std::unique_ptr<Export<Managed>> made, const char* name) {
  nb::object capsule = nb::steal(PyCapsule_New(&made->managed, name, drop_capsule<Managed>));
  if (!capsule.is_valid()) throw nb::python_error();
  made.release();
  return capsule;
}

bool speaks_version_1(nb::handle max_version) {
  return !max_version.is_none() && nb::cast<int>(nb::borrow<nb::sequence>(max_version)[0]) >= 1;
}

nb::object export_tensor(const pl::Tensor& x, nb::handle max_version, nb::handle device, std::optional<bool> copy) {
  if (!device.is_none()) {
    const auto wanted = nb::borrow<nb::sequence>(device);
    if (nb::cast<int>(wanted[0]) != kCpu)
      throw nb::buffer_error("__dlpack__: only the processors' memory (device type 1) is offered");
  }
  const bool copies = copy == true;
  const pl::Tensor held = copies ? unlocked([&] { return x.clone(); }) : x;
  if (!speaks_version_1(max_version)) {
    if (!copies)
      throw nb::buffer_error(
          "__dlpack__: a consumer of DLPack below version 1 cannot be told that a tensor is read-only; copy it, or ask "
          "with max_version=(1, 0)");
    return capsule_of(std::make_unique<Export<DlManaged>>(held), kPlain);
  }
  auto made = std::make_unique<Export<DlVersioned>>(held);
  made->managed.major = 1;
  made->managed.minor = 0;
  made->managed.flags = copies ? kIsCopied : kReadOnly;
  return capsule_of(std::move(made), kVersioned);
}

template <class Managed>
Strided take_capsule(PyObject* capsule, const char* name, const char* used) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed == nullptr) throw nb::python_error();
  const DlTensor& t = managed->tensor;
  if (t.device.type != kCpu)
    throw nb::buffer_error(
        fmt::format("from_dlpack: memory of device type {} cannot be read here; copy it to the CPU first",
                    t.device.type)
            .c_str());
  Strided result{.data = static_cast<std::byte*>(t.data) + t.byte_offset, .dtype = dtype_of(t.type)};
  result.item_bytes = pl::size_of(result.dtype);
  const auto item = static_cast<std::int64_t>(result.item_bytes);
  result.shape.assign(t.shape, t.shape + t.rank);
  result.byte_strides.resize(result.shape.size());
  std::int64_t dense = item;
  for (std::size_t axis = result.shape.size(); axis-- > 0; dense *= result.shape[axis])
    result.byte_strides[axis] = t.strides ? t.strides[axis] * item : dense;
  if constexpr (std::is_same_v<Managed, DlVersioned>) result.is_read_only = (managed->flags & kReadOnly) != 0;
  PyCapsule_SetName(capsule, used);
  // Called once, when the last copy of the function goes or it is called.
  auto owner = std::shared_ptr<Managed>(managed, [](Managed* m) {
    if (m->deleter != nullptr) m->deleter(m);
  });
  result.release = [owner]() mutable { owner.reset(); };
  return result;
}

nb::object ask_for_capsule(nb::handle object, std::optional<bool> copy) {
  nb::dict arguments;
  arguments["max_version"] = nb::make_tuple(1, 0);
  if (copy) arguments["copy"] = *copy;
  try {
    return object.attr("__dlpack__")(**arguments);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;  // An older producer takes no such arguments.
    return object.attr("__dlpack__")();
  }
}

}  // namespace

Strided dlpack_of(nb::handle object, std::optional<bool> copy) {
  const bool is_capsule = PyCapsule_CheckExact(object.ptr());
  const nb::object capsule = is_capsule ? nb::borrow(object) : ask_for_capsule(object, copy);
  if (PyCapsule_IsValid(capsule.ptr(), kVersioned))
    return take_capsule<DlVersioned>(capsule.ptr(), kVersioned, "used_dltensor_versioned");
  return take_capsule<DlManaged>(capsule.ptr(), kPlain, "used_dltensor");
}

void bind_exchange(Module& m) {
  m.def(
      "asarray",
      [](nb::handle object, nb::handle dtype, std::optional<bool> copy, nb::handle device) {
        std::optional<pl::DeviceScope> scope;
        if (!device.is_none()) scope.emplace(nb::cast<std::string>(nb::str(device)));
        return wrap_tensor(import_object(object, optional_dtype(dtype), copy));
      },
      nb::arg("obj").none(), nb::arg("dtype").none() = nb::none(), nb::kw_only(), nb::arg("copy").none() = nb::none(),
      nb::arg("device").none() = nb::none(),
      nb::sig("def asarray(obj: TensorLike, dtype: DTypeLike | None = None, *, copy: bool | None = None, device: str | "
              "None = None) -> Tensor"),
      "A tensor of an array, a list, a number.\n\nThe elements are copied, into the budget that is open, unless the "
      "memory "
      "cannot change (a read-only\narray); copy=True always copies, copy=False never: then the memory must not change "
      "while the tensor\nlives.\n\n>>> pl.asarray([[1, 2], [3, 4]]).dtype\nplimsoll.int64\n>>> pl.asarray([0.5, "
      "1]).dtype\nplimsoll.float32");
  m.def(
      "from_dlpack",
      [](nb::handle object, nb::handle device, std::optional<bool> copy) {
        if (auto tensor = tensor_of(object); tensor && copy != true) return wrap_tensor(*tensor);
        Strided memory = dlpack_of(object, copy);
        if (copy == false && !memory.is_contiguous())
          throw nb::buffer_error("from_dlpack: memory that is not contiguous takes a copy, and copy=False forbids it");
        if (!device.is_none() && !nb::cast<std::string>(nb::str(device)).starts_with("CPU"))
          throw nb::buffer_error("from_dlpack: only devices of type CPU are offered");
        return wrap_tensor(copy == true || !memory.is_contiguous() ? copied(memory) : wrapped(std::move(memory)));
      },
      nb::arg("x"), nb::kw_only(), nb::arg("device").none() = nb::none(), nb::arg("copy").none() = nb::none(),
      nb::sig("def from_dlpack(x: object, /, *, device: object | None = None, copy: bool | None = None) -> Tensor"));
  m.def(
      "dlpack_of",
      [](nb::handle x, nb::handle max_version, nb::handle device, std::optional<bool> copy) {
        return export_tensor(*tensor_of(x), max_version, device, copy);
      },
      nb::arg("x"), nb::arg("max_version").none(), nb::arg("device").none(), nb::arg("copy").none());
  // The bits of a bfloat16 tensor, for NumPy, which has no such type of its own.
  m.def(
      "from_bytes",
      [](nb::bytes bytes, nb::handle dtype, nb::handle shape) {
        const pl::DType type = to_dtype(dtype);
        const pl::Shape sizes = to_shape(shape);
        if (bytes.size() != sizes.size() * pl::size_of(type)) throw nb::value_error("from_bytes: another size");
        Strided memory{.data = const_cast<char*>(bytes.c_str()), .dtype = type, .item_bytes = pl::size_of(type)};
        memory.shape.assign(sizes.begin(), sizes.end());
        memory.byte_strides.resize(memory.shape.size());
        std::int64_t stride = static_cast<std::int64_t>(memory.item_bytes);
        for (std::size_t axis = memory.shape.size(); axis-- > 0; stride *= memory.shape[axis])
          memory.byte_strides[axis] = stride;
        return wrap_tensor(copied(memory));
      },
      nb::arg("data"), nb::arg("dtype"), nb::arg("shape"),
      "A tensor of these bytes, element after element, as tobytes() gives them.");
}

}  // namespace binding
