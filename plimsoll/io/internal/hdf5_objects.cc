#include "plimsoll/io/internal/hdf5_objects.h"

#include <fmt/format.h>

#include <set>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/io/internal/hdf5_text.h"

namespace plimsoll::internal {
namespace {

constexpr std::string_view kSignature{"\x89HDF\r\n\x1a\n", 8};
constexpr std::size_t kMaxObjects = std::size_t{1} << 18, kMaxDepth = 64;
constexpr std::uint64_t kMaxNodeBytes = 16_MiB;  // Of one header block or tree node.
constexpr int kSpace = 1, kLinkInfo = 2, kType = 3, kLink = 6, kLayout = 8, kFilters = 11, kAttribute = 12;
constexpr int kContinuation = 16, kSymbolTable = 17, kAttributeInfo = 21;

struct SymbolTable {
  std::uint64_t tree = kHdf5Nowhere, heap = kHdf5Nowhere;
};

struct Link {
  std::string name;
  std::uint64_t address = 0;
};

// The contents of one header.
struct Header {
  std::optional<SymbolTable> table;
  std::vector<Link> links;
  std::optional<Hdf5Type> type;
  bool has_space = false, shared_type = false;
  std::optional<Shape> space;
  Hdf5Layout layout;
  std::vector<Hdf5Filter> filters;
  std::map<std::string, std::vector<std::string>> attributes;
};

class Reader {
 public:
  explicit Reader(const Hdf5Bytes& bytes) : bytes_(bytes), text_(bytes) {}

  std::vector<Hdf5Object> run() {
    visit("", root_address(), 0);
    return std::move(objects_);
  }

 private:
  [[noreturn]] void unsupported(const std::string& what) const {
    throw Unsupported(fmt::format("file \"{}\": {}", bytes_.file.name(), what));
  }
  // Blocks do not overlap, so together they are not longer than the file (some are read in two steps).
  Hdf5Cursor block(std::uint64_t address, std::uint64_t size, std::string_view what) {
    spent_ += std::min(size, bytes_.size);
    if (spent_ / 2 > bytes_.size)
      bytes_.corrupt(std::min(address, bytes_.size), fmt::format("{} overlaps others", what));
    return bytes_.block(address, size, what);
  }
  // Every block belongs to one owner; a second reference is a cycle or damage.
  void visit_once(std::uint64_t address, std::string_view what) {
    if (!seen_.insert(address).second)
      bytes_.corrupt(std::min(address, bytes_.size), fmt::format("{} at {} is used twice", what, address));
  }

  std::uint64_t root_address() {
    Hdf5Cursor in = block(0, std::min<std::uint64_t>(bytes_.size, 128), "the superblock");
    if (in.left() < 48 || in.text(8) != kSignature) bytes_.corrupt(0, "is not an HDF5 file");
    const int version = in.byte();
    if (version > 3) unsupported(fmt::format("superblock of version {}; 0 to 3 are read", version));
    if (version < 2) in.skip(4);
    const int offset_bytes = in.byte(), length_bytes = in.byte();
    if (offset_bytes != 8 || length_bytes != 8)
      unsupported(fmt::format("addresses of {} and lengths of {} bytes; 8 are read", offset_bytes, length_bytes));
    in.skip(version < 2 ? 9 : 1);
    if (version == 1) in.skip(4);
    if (const auto base = in.number<std::uint64_t>(); base != 0)
      unsupported(fmt::format("its addresses begin at {}; 0 is read", base));
    in.skip(version < 2 ? 24 : 16);
    if (version < 2) in.skip(8);  // The root's name, which it does not have.
    return in.number<std::uint64_t>();
  }

  void visit(const std::string& path, std::uint64_t address, std::size_t depth) {
    if (depth > kMaxDepth) bytes_.corrupt(address, fmt::format("groups are nested more than {} deep", kMaxDepth));
    if (objects_.size() >= kMaxObjects) unsupported(fmt::format("has more than {} objects", kMaxObjects));
    visit_once(address, "an object header");
    Header header = read_header(address);
    Hdf5Object object{path, address, std::nullopt, std::move(header.attributes)};
    const bool is_dataset = header.type && header.layout.kind != Hdf5Layout::Kind::kNone;
    if (is_dataset) {
      if (!header.has_space) bytes_.corrupt(address, fmt::format("dataset \"{}\" has no sizes", path));
      object.dataset = Hdf5Object::Dataset{*header.type, header.space, header.layout, header.filters};
    }
    objects_.push_back(std::move(object));
    if (header.shared_type)
      unsupported(fmt::format("dataset \"{}\" has a type that is stored elsewhere, which is not read", path));
    if (header.table) read_table(*header.table, header.links);
    std::set<std::string_view> names;
    for (const Link& link : header.links) {
      const std::string inner = path.empty() ? link.name : path + "/" + link.name;
      if (link.name.empty() || link.name.find('/') != std::string::npos || !names.insert(link.name).second)
        bytes_.corrupt(address, fmt::format("group \"{}\": a link is named \"{}\", or two are", path, link.name));
      text_.charge(inner.size(), address);
      visit(inner, link.address, depth + 1);
    }
  }

  Header read_header(std::uint64_t address) {
    Header out;
    Hdf5Cursor head = block(address, 16, "an object header");
    const std::string_view mark = head.text(4);
    if (mark == "OHDR") {
      read_new_header(address, out);
      return out;
    }
    if (mark[0] != 1) bytes_.corrupt(address, fmt::format("an object header of version {}", int(mark[0])));
    head.skip(4);
    const std::uint64_t size = head.number<std::uint32_t>();
    std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks = {{address + 16, size}};
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].second > kMaxNodeBytes) bytes_.corrupt(address, "a very large object header");
      Hdf5Cursor in = block(blocks[i].first, blocks[i].second, "an object header");
      while (in.left() >= 8) {
        const auto kind = in.number<std::uint16_t>();
        const std::size_t bytes = in.number<std::uint16_t>();
        const std::uint8_t flags = in.byte();
        in.skip(3);
        if (bytes > in.left()) in.corrupt("a message that does not fit its header");
        Hdf5Cursor message = in.part(bytes);
        take(kind, flags, message, out, blocks);
      }
    }
    return out;
  }

  // The newest format: checksums at the end of each block, not verified.
  void read_new_header(std::uint64_t address, Header& out) {
    Hdf5Cursor head = block(address, std::min<std::uint64_t>(bytes_.size - address, 48), "an object header");
    head.skip(4);
    if (const int version = head.byte(); version != 2)
      bytes_.corrupt(address, fmt::format("an object header of version {}", version));
    const std::uint8_t flags = head.byte();
    if ((flags & 0x20) != 0) head.skip(16);
    if ((flags & 0x10) != 0) head.skip(4);
    const std::uint64_t size = head.sized(std::size_t{1} << (flags & 3));
    std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks = {{head.address(), size}};
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].second > kMaxNodeBytes) bytes_.corrupt(address, "a very large object header");
      Hdf5Cursor in = block(blocks[i].first, blocks[i].second, "an object header");
      if (i > 0) in.expect("OCHK", "a continued object header");
      const std::size_t tail = i > 0 ? 4 : 0, each = (flags & 4) != 0 ? 6 : 4;
      while (in.left() >= each + tail) {
        const int kind = in.byte();
        const std::size_t bytes = in.number<std::uint16_t>();
        const std::uint8_t message_flags = in.byte();
        if (each == 6) in.skip(2);
        if (bytes > in.left()) in.corrupt("a message that does not fit its header");
        Hdf5Cursor message = in.part(bytes);
        take(kind, message_flags, message, out, blocks);
      }
    }
  }

  void take(int kind, std::uint8_t flags, Hdf5Cursor& in, Header& out,
            std::vector<std::pair<std::uint64_t, std::uint64_t>>& blocks) {
    const bool shared = (flags & 2) != 0;
    if (kind == kContinuation) {
      const auto address = in.number<std::uint64_t>(), size = in.number<std::uint64_t>();
      visit_once(address, "a part of an object header");
      blocks.emplace_back(address, size);
    } else if (kind == kSymbolTable) {
      out.table = SymbolTable{in.number<std::uint64_t>(), in.number<std::uint64_t>()};
    } else if (kind == kType) {
      if (shared)
        out.shared_type = true;
      else
        out.type = read_hdf5_type(in);
    } else if (kind == kSpace) {
      out.has_space = true;
      out.space = read_hdf5_space(in);
    } else if (kind == kLayout) {
      out.layout = read_hdf5_layout(in);
    } else if (kind == kFilters) {
      out.filters = read_hdf5_filters(in);
    } else if (kind == kAttribute && !shared) {
      text_.read_attribute(in, out.attributes);
    } else if (kind == kLink) {
      out.links.push_back(read_link(in));
    } else if (kind == kLinkInfo || kind == kAttributeInfo) {
      refuse_dense(kind, in);
    }
  }

  Link read_link(Hdf5Cursor& in) {
    if (in.byte() != 1) in.corrupt("a link of another version than 1");
    const std::uint8_t flags = in.byte();
    const int kind = (flags & 8) != 0 ? in.byte() : 0;
    if ((flags & 4) != 0) in.skip(8);
    if ((flags & 16) != 0) in.skip(1);
    const std::uint64_t size = in.sized(std::size_t{1} << (flags & 3));
    Link link{std::string(in.text(static_cast<std::size_t>(std::min<std::uint64_t>(size, in.left() + 1)))), 0};
    if (kind != 0) unsupported(fmt::format("link \"{}\" is symbolic or to another file, which is not read", link.name));
    link.address = in.number<std::uint64_t>();
    return link;
  }

  // Large objects keep their links or attributes in a separate heap, which Keras' files do not use.
  void refuse_dense(int kind, Hdf5Cursor& in) {
    in.skip(1);
    const std::uint8_t flags = in.byte();
    if ((flags & 1) != 0) in.skip(kind == kLinkInfo ? 8 : 2);
    if (in.number<std::uint64_t>() != kHdf5Nowhere)
      unsupported("has a group of many links or attributes in the newest form; write it with libver=\"earliest\"");
  }

  void read_table(const SymbolTable& table, std::vector<Link>& links) {
    Hdf5Cursor heap = block(table.heap, 32, "a local heap");
    heap.expect("HEAP", "a local heap");
    heap.skip(4);
    const auto size = heap.number<std::uint64_t>();
    heap.skip(8);
    const auto data = heap.number<std::uint64_t>();
    if (size > kMaxNodeBytes) unsupported(fmt::format("names of {} bytes in one group", size));
    visit_once(data, "names of a group");
    Hdf5Cursor all = block(data, size, "names of a group");
    read_tree(table.tree, -1, std::string(all.text(static_cast<std::size_t>(size))), data, links);
  }

  // A node of a group's tree; `level` is the level that its parent expects, -1 for the top.
  void read_tree(std::uint64_t address, int level, const std::string& names, std::uint64_t names_at,
                 std::vector<Link>& links) {
    visit_once(address, "a tree of links");
    Hdf5Cursor head = block(address, 24, "a tree of links");
    head.expect(std::string_view("TREE\0", 5), "a tree of links");
    const int here = head.byte();
    if (level >= 0 && here != level) head.corrupt(fmt::format("a tree node of level {} instead of {}", here, level));
    const std::size_t count = head.number<std::uint16_t>();
    Hdf5Cursor in = block(address + 24, count * 16 + 8, "a tree of links");
    for (std::size_t i = 0; i < count; ++i) {
      in.skip(8);
      const auto child = in.number<std::uint64_t>();
      if (here > 0)
        read_tree(child, here - 1, names, names_at, links);
      else
        read_leaf(child, names, names_at, links);
    }
  }

  void read_leaf(std::uint64_t address, const std::string& names, std::uint64_t names_at, std::vector<Link>& links) {
    visit_once(address, "a list of links");
    Hdf5Cursor head = block(address, 8, "a list of links");
    head.expect("SNOD", "a list of links");
    head.skip(2);
    const std::size_t count = head.number<std::uint16_t>();
    Hdf5Cursor in = block(address + 8, count * 40, "a list of links");
    for (std::size_t i = 0; i < count; ++i) {
      const auto at = in.number<std::uint64_t>();
      Link link{"", in.number<std::uint64_t>()};
      const auto kind = in.number<std::uint32_t>();
      in.skip(20);
      const std::size_t end = at < names.size() ? names.find('\0', static_cast<std::size_t>(at)) : std::string::npos;
      if (end == std::string::npos)
        bytes_.corrupt(names_at, fmt::format("a name at {} does not end in its heap of {} bytes", at, names.size()));
      link.name = names.substr(static_cast<std::size_t>(at), end - static_cast<std::size_t>(at));
      text_.charge(link.name.size(), names_at);
      if (kind == 2) unsupported(fmt::format("link \"{}\" is symbolic, which is not read", link.name));
      links.push_back(std::move(link));
    }
  }

  const Hdf5Bytes& bytes_;
  Hdf5Text text_;
  std::uint64_t spent_ = 0;  // Bytes of blocks.
  std::set<std::uint64_t> seen_;
  std::vector<Hdf5Object> objects_;
};

}  // namespace

std::vector<Hdf5Object> read_hdf5_objects(const Hdf5Bytes& bytes) { return Reader(bytes).run(); }

}  // namespace plimsoll::internal
