#include "plimsoll/cli/print_document.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace plimsoll {

void print_document(const nlohmann::ordered_json& document) {
  std::printf("%s\n", document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

}  // namespace plimsoll
