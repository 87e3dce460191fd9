#include "plimsoll/cli/print_document.h"
#include "plimsoll/base/json.h"

#include <cstdio>

namespace plimsoll::internal {

void print_document(const nlohmann::ordered_json& document) { std::printf("%s\n", json_text(document, 2).c_str()); }

}  // namespace plimsoll::internal
