#include "plimsoll/tensor/who_holds.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/text.h"
#include "plimsoll/device/device.h"
#include "plimsoll/tensor/evict/recipe_book.h"
#include "plimsoll/tensor/holder.h"
#include "plimsoll/tensor/ledger_text.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/scope_list.h"

namespace plimsoll {
namespace {

std::string counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// What a walk finds about one tensor.
struct Found {
  LiveTensor row;
  const TensorRecord* record;
  const ScopeList* scope;
  std::size_t handles;
  bool is_view;
  bool is_kept;
};

Found find(const TensorRecord& record, const LedgerRow& row) {
  return {describe_row(row),
          &record,
          record.owner.load(std::memory_order_relaxed),
          static_cast<std::size_t>(record.references.load(std::memory_order_relaxed) & TensorRecord::kStrongMask),
          record.has(TensorRecord::kView),
          record.has(TensorRecord::kKept)};
}

std::string title_of(const Found& found, bool asked) {
  const std::string name = found.row.name.empty() ? "" : fmt::format("\"{}\" ", found.row.name);
  return fmt::format("{} {}{}", found.is_view && !asked ? "view" : "tensor", name, found.row.shape.to_tuple_string());
}

std::string detail_of(const Found& found) {
  std::string out = fmt::format("{}, made by {}", dtype_name(found.row.dtype), found.row.op);
  if (!found.row.scope.empty()) out += fmt::format(" in \"{}\"", found.row.scope);
  return out;
}

// The position among the calling thread's scopes; scopes not among them belong to other threads.
std::string scope_title(const ScopeList* scope) {
  std::size_t depth = 0;
  for (const ScopeList* mine = ThreadContext::current().scope; mine; mine = mine->outer, ++depth)
    if (mine == scope)
      return depth == 0 ? "tidy scope, the innermost" : fmt::format("tidy scope, {} further out", depth);
  return "tidy scope of another thread or task";
}

}  // namespace

// Collects the nodes of one answer.
class HolderSearch {
 public:
  Holders of(const Tensor& tensor) {
    const TensorRecord* record = tensor.record();
    if (!record) throw InvalidArgument("who_holds: the handle is empty; give a tensor");
    if (tensor.is_disposed()) return of_disposed(*record);
    const StorageRef bytes = StorageRef::share(record->storage.load(std::memory_order_acquire));
    add({Holders::Kind::kBuffer, fmt::format("buffer of {}", format_bytes(bytes->bytes())), buffer_detail(*bytes), 0});
    add_tensors(*bytes, record);
    add_holders(*bytes);
    add_pins(*bytes);
    return std::move(result_);
  }

 private:
  Holders of_disposed(const TensorRecord& record) {
    Found found = find(record, {&record, nullptr, 0});
    add({Holders::Kind::kTensor, title_of(found, true) + ", disposed",
         detail_of(found) + "; its bytes are freed, or others hold them", 0, true});
    add({Holders::Kind::kHandles, counted(found.handles, "handle"), "of the program", 0});
    return std::move(result_);
  }

  std::size_t add(Holders::Node node) {
    result_.nodes_.push_back(std::move(node));
    return result_.nodes_.size() - 1;
  }

  static bool is_spilled(const Storage& storage) {
    const std::lock_guard lock(evict::RecipeBook::instance().mutex());
    const evict::Value* const value = evict::StorageAccess::value_of(storage);
    return value && value->is_stored() && value->is_dropped();
  }
  static std::string buffer_detail(const Storage& storage) {
    const char* state = storage.is_wrapped()    ? ", the program's own memory"
                        : storage.is_resident() ? ""
                        : is_spilled(storage)   ? ", spilled: loaded when it is read"
                        : storage.is_dropped()  ? ", dropped: computed again when it is read"
                                                : ", not taken yet";
    return fmt::format("on {}{}", storage.device().name(), state);
  }

  void add_tensors(const Storage& bytes, const TensorRecord* asked) {
    std::vector<Found> found;
    LedgerWalk::run([&](const LedgerRow& row) {
      // A variable's own tensor is reported as the variable.
      if (row.record && row.storage == &bytes && !row.record->has(TensorRecord::kVariable))
        found.push_back(find(*row.record, row));
    });
    std::stable_partition(found.begin(), found.end(), [&](const Found& tensor) { return tensor.record == asked; });
    known_ += found.size();
    for (const Found& tensor : found) {
      const bool is_asked = tensor.record == asked;
      const std::size_t node =
          add({Holders::Kind::kTensor, title_of(tensor, is_asked), detail_of(tensor), 0, is_asked});
      add({Holders::Kind::kHandles, counted(tensor.handles, "handle"), "of the program", node});
      if (tensor.is_kept) add({Holders::Kind::kScope, "keep()", "no scope releases it", node});
      if (tensor.scope && !tensor.is_kept)
        add({Holders::Kind::kScope, scope_title(tensor.scope), "releases it at its end", node});
    }
  }

  void add_holders(const Storage& bytes) {
    Holder::for_each([&](const Holder& holder) {
      std::map<std::string, std::size_t> details;
      holder.visit_held([&](const Storage& held, const char* detail) {
        if (&held == &bytes) ++details[detail];
      });
      if (details.empty()) return;
      std::string text;
      for (const auto& [detail, times] : details) {
        known_ += times;
        text += fmt::format("{}{}{}", text.empty() ? "" : ", ", detail,
                            times == 1 ? "" : fmt::format(" ({} times)", times));
      }
      add({Holders::Kind::kHolder, holder.describe(), text, 0});
    });
  }

  void add_pins(const Storage& bytes) {
    const std::size_t pins = LedgerWalk::num_pins(bytes);
    if (pins > 0) add({Holders::Kind::kHandles, counted(pins, "data view"), "of the program, pinning the bytes", 0});
    const std::size_t references = bytes.references() - 1;  // Without the search's own reference.
    if (references > known_ + pins)
      add({Holders::Kind::kHandles, counted(references - known_ - pins, "other reference"), "of code at work", 0});
  }

  Holders result_;
  std::size_t known_ = 0;  // References to the buffer that are explained.
};

Holders who_holds(const Tensor& tensor) { return HolderSearch().of(tensor); }

std::vector<std::size_t> Holders::holders_of(std::size_t node) const {
  std::vector<std::size_t> result;
  for (std::size_t i = 1; i < nodes_.size(); ++i)
    if (nodes_[i].held == node) result.push_back(i);
  return result;
}

std::size_t Holders::asked() const noexcept {
  const auto found = std::find_if(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.asked; });
  return static_cast<std::size_t>(found - nodes_.begin());
}

std::vector<std::string> Holders::paths() const {
  std::vector<std::string> result;
  const std::size_t from = asked();
  std::vector<bool> is_held(nodes_.size());
  for (std::size_t i = 1; i < nodes_.size(); ++i) is_held[nodes_[i].held] = true;
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    if (is_held[i]) continue;
    std::string tail;
    for (std::size_t at = i; at != 0 && at != from; at = nodes_[at].held) {
      const Node& node = nodes_[at];
      const bool say_more = node.kind == Kind::kHolder && !node.detail.empty();
      tail = fmt::format(" <- {}{}{}{}", node.title, say_more ? ": " : "", say_more ? node.detail : "", tail);
    }
    result.push_back(nodes_[from].title + tail);
  }
  return result;
}

void Holders::append_list(std::string& out, std::size_t node, std::size_t depth) const {
  for (const std::size_t holder : holders_of(node)) {
    const Node& line = nodes_[holder];
    if (line.asked) continue;
    fmt::format_to(std::back_inserter(out), "{:{}}<- {}{}{}\n", "", 2 * depth, line.title,
                   line.detail.empty() ? "" : ": ", line.detail);
    append_list(out, holder, depth + 1);
  }
}

std::string Holders::to_string() const {
  const Node& tensor = nodes_[asked()];
  std::string out = fmt::format("{}: {}", tensor.title, tensor.detail);
  if (asked() != 0) out += fmt::format("; {} {}", nodes_[0].title, nodes_[0].detail);
  out += '\n';
  append_list(out, asked(), 1);
  if (asked() != 0) append_list(out, 0, 1);
  return out;
}

std::string Holders::to_dot() const {
  const auto quoted = [](const std::string& text) {
    std::string out;
    for (const char c : valid_utf8(text)) {
      if (c == '"' || c == '\\') out += '\\';
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out;
  };
  std::string out = "digraph holders {\n  rankdir=RL;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n";
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    fmt::format_to(std::back_inserter(out), "  n{} [label=\"{}{}{}\"{}];\n", i, quoted(nodes_[i].title),
                   nodes_[i].detail.empty() ? "" : "\\n", quoted(nodes_[i].detail),
                   nodes_[i].asked ? ", penwidth=3" : "");
  for (std::size_t i = 1; i < nodes_.size(); ++i)
    fmt::format_to(std::back_inserter(out), "  n{} -> n{};\n", i, nodes_[i].held);
  return out + "}\n";
}

void Holders::write_dot(const std::filesystem::path& path) const {
  AtomicFile file(path);
  file.write(to_dot());
  file.commit();
}

void Holders::write_svg(const std::filesystem::path& path) const {
  AtomicFile file(path);
  file.write(to_svg());
  file.commit();
}

}  // namespace plimsoll
