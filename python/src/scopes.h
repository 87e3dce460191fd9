// What context managers are made of: a scope of the library that begins with `with` and ends with its block.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "common.h"

namespace binding {

// A scope of the library while it is open; its destructor ends it.
struct LiveScope {
  virtual ~LiveScope() = default;
};

struct EnteredScope {
  const char* what;
  std::unique_ptr<LiveScope> scope;
  const void* thread;  // The list of open scopes of the thread on which it began.
  bool has_ended = false;
};

// The object between `with` and `as`; may be entered several times.
class ScopeObject {
 public:
  void begin(const char* what, std::unique_ptr<LiveScope> scope);
  void end();              // Throws FailedPrecondition on another thread, and when a scope inside of it goes on.
  LiveScope* innermost();  // nullptr when it is not open.

 private:
  std::vector<std::shared_ptr<EnteredScope>> open_;
};

// Alerts: a callable of Python that is called with a MemoryAlert.
std::function<void(const pl::MemoryAlert&)> alert_function(nb::object callback);
nb::object alert_handle(pl::MemoryAlertHandle handle);

// A reference to an object of Python that may be copied and dropped without Python's lock.
class SharedObject {
 public:
  explicit SharedObject(nb::object object);
  nb::handle get() const { return object_->ptr(); }
  // For the collector of cycles, with Python's lock: whether nobody else has it; None in its place from now on.
  bool is_only() const { return object_.use_count() == 1; }
  void forget() { *object_ = nb::none(); }

 private:
  std::shared_ptr<nb::object> object_;
};

// Lets the cycle collector see what any object with attributes holds, and clear it.
int traverse_attributes(PyObject* self, visitproc visit, void* arg);
int clear_attributes(PyObject* self);

}  // namespace binding
