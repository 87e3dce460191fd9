#include "plimsoll/memory/trace/trace_file.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/trace/trace_buffer.h"

namespace plimsoll {
namespace {

using namespace trace_format;
using testing::HasSubstr;
using Bytes = std::vector<std::byte>;

void append(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

Bytes header_bytes(std::uint32_t version = kVersion) {
  Bytes bytes(kHeaderBytes);
  put_header(bytes.data(), {.version = version, .start_unix_ns = 123, .process = 7});
  return bytes;
}

Bytes block(BlockType type, std::uint32_t items, const Bytes& payload) {
  Bytes bytes(kBlockHeaderBytes);
  put_block_header(bytes.data(),
                   {.type = type, .payload_bytes = static_cast<std::uint32_t>(payload.size()), .items = items},
                   payload.data());
  append(bytes, payload);
  return bytes;
}

Bytes numbers(std::initializer_list<std::uint64_t> values) {
  Bytes bytes;
  for (const std::uint64_t value : values) {
    std::byte number[10];
    append(bytes, {number, static_cast<std::size_t>(put_number(number, value) - number)});
  }
  return bytes;
}

Bytes text(std::string_view text) {
  Bytes bytes = numbers({text.size()});
  append(bytes, std::as_bytes(std::span(text)));
  return bytes;
}

// One name, one arena, some events, the end.
Bytes good_file() {
  Bytes bytes = header_bytes();
  append(bytes, block(BlockType::kNames, 1, text("relu")));
  Bytes arena = numbers({1 << 20, 4096});
  append(arena, text("CPU:0"));
  append(bytes, block(BlockType::kArenas, 1, arena));
  auto buffer = std::make_unique<TraceBuffer>();
  TraceLabel label;
  label.requested = 100;
  label.op = 1;
  label.label.has_shape = 1;
  label.label.rank = 1;
  label.label.sizes[0] = 25;
  buffer->add_block(TraceEventKind::kAllocate, 10, {0, 500, 128, 640}, label);
  buffer->add_committed(20, 0, 4096);
  buffer->add_place(TraceEventKind::kFree, 30, {0, 500, 128, 640});
  buffer->add_text(TraceEventKind::kPhase, 40, "backward");
  append(bytes, buffer->seal(3, 4000));
  append(bytes, block(BlockType::kEnd, 1, numbers({5})));
  return bytes;
}

// One name, and a plan of 8 steps with a value, and what follows it.
Bytes file_with_plan(std::uint32_t version, std::initializer_list<std::uint64_t> after) {
  Bytes bytes = header_bytes(version);
  append(bytes, block(BlockType::kNames, 1, text("backward")));
  Bytes plan = numbers({8, 1, /* extent, first, steps, size, offset */ 0, 1, 3, 2, 4});
  append(plan, numbers({/* flags, requested, op, scope, name, category, step */ 0, 100, 1, 0, 0, 1, 0}));
  append(plan, numbers(after));
  append(bytes, block(BlockType::kPlans, 1, plan));
  return bytes;
}

std::string reason_of(const Bytes& bytes, const TraceLimits& limits = {}) {
  try {
    parse_trace(bytes, limits);
  } catch (const Corruption& error) {
    return error.what();
  }
  return "";
}

TEST(TraceFile, IsReadBackAsItWasWritten) {
  const TraceFile file = parse_trace(good_file());
  EXPECT_TRUE(file.complete);
  EXPECT_EQ(file.start_unix_ns, 123);
  EXPECT_EQ(file.process, 7u);
  EXPECT_EQ(file.dropped_events, 5u);
  ASSERT_EQ(file.events.size(), 4u);
  EXPECT_EQ(file.events[0].thread, 3u);
  EXPECT_EQ(file.events[0].system_thread, 4000u);
  EXPECT_EQ(file.events[0].block, 500u);
  EXPECT_EQ(file.events[0].sizes[0], 25u);
  EXPECT_EQ(file.events[1].time_ns, 20);
  EXPECT_EQ(file.events[2].offset, 640u);
  EXPECT_EQ(file.events[3].text, "backward");
}

TEST(TraceFile, OfVersionThreeHasRefusalsOfArenas) {
  const auto with_refusal = [](std::uint32_t version, std::initializer_list<std::uint64_t> event) {
    Bytes bytes = header_bytes(version);
    append(bytes, block(BlockType::kNames, 1, text("relu")));
    Bytes arena = numbers({1 << 20, 4096});
    append(arena, text("CPU:0"));
    append(bytes, block(BlockType::kArenas, 1, arena));
    append(bytes, block(BlockType::kEvents, 1, numbers(event)));
    return bytes;
  };
  const TraceFile old = parse_trace(with_refusal(3, {5, 0, /* arena, bytes, op, scope */ 0, 4096, 1, 0}));
  ASSERT_EQ(old.events.size(), 1u);
  EXPECT_EQ(old.events[0].requested, 4096u);
  EXPECT_EQ(old.names[old.events[0].op], "relu");
  EXPECT_EQ(old.events[0].text, "");
  const TraceFile now =
      parse_trace(with_refusal(4, {5, 0, /* bytes */ 4096, 1024, 512, 4608, /* names */ 1, 0, 1, 0, 2, 'n', 'o'}));
  ASSERT_EQ(now.events.size(), 1u);
  EXPECT_EQ(now.events[0].size, 1024u);
  EXPECT_EQ(now.events[0].number, 4608u);
  EXPECT_EQ(now.names[now.events[0].budget], "relu");
  EXPECT_EQ(now.events[0].text, "no");
  EXPECT_THAT(reason_of(with_refusal(4, {5, 0, 4096, 1024, 512, 4608, 1, 0, 2, 0, 0})), HasSubstr("name 2 of 2"));
}

TEST(TraceFile, OfVersionTwoHasPlansWithoutPhases) {
  const TraceFile old = parse_trace(file_with_plan(2, {}));
  ASSERT_EQ(old.plans.size(), 1u);
  EXPECT_EQ(old.plans[0].steps, 8u);
  ASSERT_EQ(old.plans[0].values.size(), 1u);
  EXPECT_EQ(old.plans[0].values[0].end, 4u);
  EXPECT_TRUE(old.plans[0].phases.empty());
  const TraceFile now = parse_trace(file_with_plan(3, {2, 0, 0, 5, 1}));
  ASSERT_EQ(now.plans.size(), 1u);
  ASSERT_EQ(now.plans[0].phases.size(), 2u);
  EXPECT_EQ(now.plans[0].phases[1].first, 5u);
  EXPECT_EQ(now.names[now.plans[0].phases[1].name], "backward");
  EXPECT_TRUE(parse_trace(file_with_plan(3, {0})).plans[0].phases.empty());
}

TEST(TraceFile, RefusesPhasesThatCannotBe) {
  EXPECT_THAT(reason_of(file_with_plan(2, {0})), HasSubstr("bytes after its last item"));
  EXPECT_THAT(reason_of(file_with_plan(3, {})), HasSubstr("in the middle of an item"));
  EXPECT_THAT(reason_of(file_with_plan(3, {9})), HasSubstr("a number is 9, at most 8"));
  EXPECT_THAT(reason_of(file_with_plan(3, {1, 9, 1})), HasSubstr("a number is 9, at most 8"));
  EXPECT_THAT(reason_of(file_with_plan(3, {2, 3, 1, 6, 1})), HasSubstr("a number is 6, at most 5"));
  EXPECT_THAT(reason_of(file_with_plan(3, {2, 3, 1, 0, 1})), HasSubstr("begin with the same step"));
  EXPECT_THAT(reason_of(file_with_plan(3, {1, 0, 2})), HasSubstr("name 2 of 2 is not there"));
}

TEST(TraceFile, CutAnywhereIsReadUpToItsLastWholeBlock) {
  const Bytes whole = good_file();
  std::size_t events = 0;
  for (std::size_t size = kHeaderBytes; size < whole.size(); ++size) {
    const TraceFile file = parse_trace({whole.data(), size});
    EXPECT_FALSE(file.complete);
    EXPECT_LE(file.readable_bytes, size);
    EXPECT_GE(file.events.size(), events) << "never less for more bytes";
    events = file.events.size();
  }
  EXPECT_EQ(events, 4u);
  for (std::size_t size = 0; size < kHeaderBytes; ++size)
    EXPECT_THROW(parse_trace({whole.data(), size}), Corruption) << size;
}

TEST(TraceFile, WithAnyByteChangedIsRefusedWithTheOffset) {
  const Bytes whole = good_file();
  for (std::size_t at = 0; at < whole.size() - 4; ++at) {
    if (at >= 36 && at < kHeaderBytes) continue;  // Reserved.
    Bytes damaged = whole;
    damaged[at] ^= std::byte{0x41};
    std::string reason;
    try {
      reason = parse_trace(damaged).complete ? "complete" : "cut";  // A length may now reach beyond the end.
    } catch (const Corruption& error) {
      reason = error.what();
    }
    EXPECT_NE(reason, "complete") << at;
    if (reason != "cut") {
      EXPECT_THAT(reason, HasSubstr("(offset ")) << at;
    }
  }
}

TEST(TraceFile, SaysWhatIsWrong) {
  const auto with = [](const Bytes& added) {
    Bytes bytes = header_bytes();
    append(bytes, block(BlockType::kNames, 1, text("relu")));
    Bytes arena = numbers({1 << 20, 4096});
    append(arena, text("CPU:0"));
    append(bytes, block(BlockType::kArenas, 1, arena));
    append(bytes, added);
    return bytes;
  };
  const auto event = [&](std::initializer_list<std::uint64_t> values) {
    return with(block(BlockType::kEvents, 1, numbers(values)));
  };
  EXPECT_THAT(reason_of({}), HasSubstr("not a trace file"));
  EXPECT_THAT(reason_of(event({77, 0})), HasSubstr("event kind 77"));
  EXPECT_THAT(reason_of(event({2, 0, 1, 0, 0, 0})), HasSubstr("arena 1 of 1"));
  EXPECT_THAT(reason_of(event({1, 0, 0, 0, 2, 0, 0, 100, 9, 0, 0, 0, 0})), HasSubstr("name 9 of 2"));
  EXPECT_THAT(reason_of(event({1, 0, 0, 0, 2, 0, 0, 100, 1, 0, 0, 9, 0})), HasSubstr("category 9"));
  EXPECT_THAT(reason_of(event({1, 0, 0, 0, 1, 0, 0, 100, 1, 0, 0, 0, 0})), HasSubstr("more was requested"));
  EXPECT_THAT(reason_of(event({1, 0, 0, 0, 2, 0, 64})), HasSubstr("flags 0x40"));
  EXPECT_THAT(reason_of(event({2, 0, 0, 0, UINT64_MAX, 0})), HasSubstr("at most"));
  EXPECT_THAT(reason_of(event({2, 0, 0})), HasSubstr("middle of an item"));
  EXPECT_THAT(reason_of(event({6, 0, 1, 1})), HasSubstr("after its last item"));
  EXPECT_THAT(reason_of(event({8, 0, 1025})), HasSubstr("at most 1024"));
  EXPECT_THAT(reason_of(event({8, 0, 1000})), HasSubstr("beyond its block"));
  Bytes endless(12, std::byte{0xFF});
  EXPECT_THAT(reason_of(with(block(BlockType::kEnd, 1, endless))), HasSubstr("more than 64 bits"));
  EXPECT_THAT(reason_of(with(block(static_cast<BlockType>(5), 0, {}))), HasSubstr("block type 0x5"));
  Bytes more = good_file();
  more.push_back(std::byte{0});
  EXPECT_THAT(reason_of(more), HasSubstr("after the end"));
}

TEST(TraceFile, IsReadWithinLimits) {
  TraceLimits limits;
  limits.max_events = 3;
  EXPECT_THAT(reason_of(good_file(), limits), HasSubstr("more than 3 events"));
  limits = {};
  limits.max_names = 0;
  EXPECT_THAT(reason_of(good_file(), limits), HasSubstr("more than 0 names"));
  limits = {};
  limits.max_arenas = 0;
  EXPECT_THAT(reason_of(good_file(), limits), HasSubstr("more than 0 arenas"));
}

TEST(TraceFile, SurvivesRandomDamageWithoutChecksums) {
  const Bytes whole = good_file();
  TraceLimits limits;
  limits.verify_checksums = false;
  std::mt19937 random(1);
  int read = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes damaged = whole;
    for (unsigned i = 0; i <= random() % 4; ++i) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    try {
      parse_trace(damaged, limits);
      ++read;
    } catch (const Corruption&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 100);
}

TEST(TraceFile, ThatDoesNotExistIsNotFound) { EXPECT_THROW(read_trace_file("no/such.trace"), NotFound); }

TEST(TraceFormat, NumbersTakeSevenBitsAByte) {
  std::byte bytes[10];
  EXPECT_EQ(put_number(bytes, 0) - bytes, 1);
  EXPECT_EQ(put_number(bytes, 127) - bytes, 1);
  EXPECT_EQ(put_number(bytes, 128) - bytes, 2);
  EXPECT_EQ(put_number(bytes, UINT64_MAX) - bytes, 10);
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1}, INT64_MIN, INT64_MAX})
    EXPECT_EQ(unzigzag(zigzag(value)), value);
}

TEST(TraceFile, IsNotReadToTheEndToSayThatItIsNone) {
  try {
    read_trace_file("/dev/zero");
    FAIL() << "it is no trace";
  } catch (const Corruption& error) {
    EXPECT_THAT(error.what(), HasSubstr("trace \"/dev/zero\": this is not a trace file"));
  }
}

}  // namespace
}  // namespace plimsoll
