#include "plimsoll/model/training/optimizer_spread.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMostAtOnce = std::size_t{1} << 26;

}  // namespace

std::vector<Optimizer::Slot> OptimizerSpread::whole_slots(const Optimizer& optimizer, const Variable& parameter) const {
  const auto same = [&](const Variable& each) { return each.id() == parameter.id(); };
  const auto found = std::find_if(parameters.begin(), parameters.end(), same);
  if (found == parameters.end()) return {};
  const auto part = static_cast<std::size_t>(found - parameters.begin());
  std::vector<Optimizer::Slot> own;
  std::size_t own_begin = 0;  // Bytes of the parameter before the part that is here.
  if (std::optional<Optimizer::StretchSlots> here = optimizer.stretch_slots(parameter)) {
    own_begin = static_cast<std::size_t>(here->begin) * size_of(parameter.dtype());
    own = std::move(here->slots);
  } else {
    own = optimizer.slots(parameter);
  }
  const bool is_first = job.rank() == 0;
  std::vector<Optimizer::Slot> whole = is_first ? optimizer.blank_slots(parameter) : std::vector<Optimizer::Slot>();
  const std::size_t count = is_first ? whole.size() : optimizer.num_slots();
  for (std::size_t slot = 0; slot < count; ++slot)
    for (int rank = 0; rank < job.size(); ++rank)
      space.visit_own(rank, [&](std::size_t at, std::size_t first, std::size_t bytes) {
        if (at != part || (!is_first && rank != job.rank())) return;
        std::byte* const to = is_first ? writable(whole[slot].value).bytes() + first : nullptr;
        const std::byte* const from = rank == job.rank() ? own[slot].value.view().bytes() + first - own_begin : nullptr;
        if (is_first && rank == 0) {
          std::memcpy(to, from, bytes);
          return;
        }
        const int tag = distributed::Job::kGatherTag;
        for (std::size_t begin = 0; begin < bytes; begin += kMostAtOnce) {
          const std::size_t size = std::min(kMostAtOnce, bytes - begin);
          const distributed::Job::Message message =
              is_first ? job.receive(rank, tag, {to + begin, size}) : job.send(0, tag, {from + begin, size});
          job.wait({&message, 1}, "save (is it called in every rank?)");
        }
      });
  return whole;
}

}  // namespace plimsoll::internal
