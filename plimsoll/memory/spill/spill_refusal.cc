#include "plimsoll/memory/spill/spill_refusal.h"

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"

namespace plimsoll::internal {
namespace {

constexpr const char* kRefused = "spill directory";

const char* remedy(int error_number) noexcept {
  switch (error_number) {
    case EDQUOT:
      return "raise the disk quota or name another directory";
    case EFBIG:
      return "raise the process's file size limit (ulimit -f) or spill less";
    default:
      return "free some space or name another directory";
  }
}

[[noreturn]] void refuse(const SpillRoom& room, std::string text) {
  throw OutOfMemory({.what = std::move(text),
                     .requested = room.requested,
                     .limit = room.limit,
                     .in_use = room.reserved,
                     .smallest_sufficient_limit = room.limit_needed});
}

[[noreturn]] void refuse_full(const SpillRoom& room, const std::string& verb) {
  std::string reason = std::generic_category().message(room.error_number);
  reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  refuse(room,
         fmt::format("{} \"{}\": cannot {}: {} (errno {}); {} are free there, {} are reserved already; {}", kRefused,
                     room.directory.native(), verb, reason, room.error_number, format_bytes_exactly(room.free_bytes),
                     format_bytes_exactly(room.reserved), remedy(room.error_number)));
}

}  // namespace

void refuse_spill(const SpillRoom& room) {
  const std::string verb = fmt::format("reserve {}", format_bytes_exactly(room.requested));
  if (room.error_number == 0)
    refuse(room, fmt::format("{} \"{}\": cannot {}: {} of its limit of {} are reserved already; raise the limit or "
                             "spill less",
                             kRefused, room.directory.native(), verb, format_bytes_exactly(room.reserved),
                             format_bytes_exactly(room.limit)));
  if (is_full(room.error_number)) refuse_full(room, verb);
  if (room.error_number == EOPNOTSUPP || room.error_number == ENOSYS)
    throw Unsupported(
        fmt::format("{} \"{}\": its file system cannot reserve space (errno {}), so a full disk would be "
                    "found too late; name a directory on another one",
                    kRefused, room.directory.native(), room.error_number));
  throw_system_error(kRefused, room.directory.native(), verb, room.error_number);
}

void throw_spill_fault(const SpillFault& fault, const SpillRoom& room) {
  const std::string where = fmt::format("{} bytes at offset {}", fault.bytes, fault.offset);
  switch (fault.kind) {
    case SpillFault::Kind::kNone:
      break;
    case SpillFault::Kind::kSystem: {
      const std::string verb = fmt::format("{} {}", fault.is_store ? "store" : "load", where);
      if (fault.is_store && is_full(fault.error_number)) refuse_full(room, verb);
      throw_system_error(kRefused, room.directory.native(), verb, fault.error_number);
    }
    case SpillFault::Kind::kEnd:
      throw Corruption(fmt::format("{} \"{}\": cannot load {}: the file ends before; check the disk", kRefused,
                                   room.directory.native(), where));
    case SpillFault::Kind::kChecksum:
      throw Corruption(
          fmt::format("{} \"{}\": the {} are not those that were stored (checksum {:08x}, was {:08x}); "
                      "check the disk",
                      kRefused, room.directory.native(), where, fault.loaded_crc, fault.stored_crc));
  }
  PLIMSOLL_CHECK(fault.kind != SpillFault::Kind::kNone);
  throw Error("spill: unknown fault");
}

}  // namespace plimsoll::internal
