#include "plimsoll/distributed/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "plimsoll/base/error.h"
#include "plimsoll/distributed/distributed_testing.h"
#include "plimsoll/distributed/unavailable.h"

namespace plimsoll::distributed {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

template <class E, class F>
std::string text_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Collectives, ExchangeGivesEverybodyEverything) {
  for (const int ranks : {1, 2, 5})
    run_ranks(ranks, [&](Job& job) {
      std::vector<int> all(static_cast<std::size_t>(ranks), -1);
      const int mine = 10 * job.rank();
      exchange(job, std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), "test");
      for (int rank = 0; rank < ranks; ++rank) EXPECT_EQ(all[static_cast<std::size_t>(rank)], 10 * rank);
    });
}

TEST(Collectives, BroadcastReachesAllFromAnyRoot) {
  for (const int ranks : {1, 2, 3, 7, 8})
    for (const int root : {0, ranks - 1})
      run_ranks(ranks, [&](Job& job) {
        std::vector<int> values(1000, job.rank());
        broadcast(job, std::as_writable_bytes(std::span(values)), root);
        EXPECT_EQ(values, std::vector<int>(1000, root));
      });
}

TEST(Collectives, NobodyLeavesABarrierBeforeAllHaveCome) {
  std::atomic<int> come = 0;
  run_ranks(4, [&](Job& job) {
    ++come;
    barrier(job);
    EXPECT_EQ(come, 4);
  });
}

TEST(Collectives, AgreeTellsWhoWantsToStopAndWhatAllUse) {
  run_ranks(3, [&](Job& job) {
    const auto mine = static_cast<std::uint64_t>(job.rank());
    const Verdict verdict = agree(job, {.wants_stop = job.rank() == 1, .bytes_used = mine, .bytes_peak = mine});
    EXPECT_TRUE(verdict.stop);
    EXPECT_EQ(verdict.bytes_used, 3u);
    EXPECT_EQ(verdict.bytes_peak, 2u);
    EXPECT_FALSE(agree(job, {}).stop);
  });
}

TEST(Collectives, AnErrorOfOneIsAnErrorOfItsKindInAll) {
  run_ranks(3, [&](Job& job) {
    const auto refuse = [&] {
      Opinion opinion;
      if (job.rank() == 2) {
        OutOfMemoryDetails details;
        details.what = "fit: no room";
        details.limit = 5;
        details.smallest_sufficient_limit = 7;
        opinion.error = std::make_exception_ptr(OutOfMemory(details));
      }
      agree(job, opinion);
    };
    const std::string text = text_of<OutOfMemory>(refuse);
    EXPECT_THAT(text, job.rank() == 2 ? HasSubstr("fit: no room") : HasSubstr("rank 2 (host "));
    EXPECT_THAT(text, HasSubstr("fit: no room"));
    agree(job, {});  // And the job goes on.
    const auto lowest = [&] {
      Opinion opinion;
      if (job.rank() > 0) opinion.error = std::make_exception_ptr(NotFound("file " + std::to_string(job.rank())));
      agree(job, opinion);
    };
    EXPECT_THAT(text_of<NotFound>(lowest), HasSubstr(job.rank() == 2 ? "file 2" : "file 1"));
  });
}

TEST(Collectives, EveryKindOfErrorKeepsItsKind) {
  run_ranks(2, [&](Job& job) {
    const auto agree_on = [&](auto error) {
      Opinion opinion;
      if (job.rank() == 0) opinion.error = std::make_exception_ptr(error);
      agree(job, opinion);
    };
    EXPECT_THROW(agree_on(InvalidArgument("x")), InvalidArgument);
    EXPECT_THROW(agree_on(FailedPrecondition("x")), FailedPrecondition);
    EXPECT_THROW(agree_on(Corruption("x")), Corruption);
    EXPECT_THROW(agree_on(Unsupported("x")), Unsupported);
    EXPECT_THROW(agree_on(std::runtime_error("x")), std::runtime_error);
    if (job.rank() == 0)
      EXPECT_THROW(agree_on(5), int);
    else
      EXPECT_THAT(text_of<Error>([&] { agree_on(5); }), HasSubstr("unknown exception"));
  });
}

TEST(Collectives, DifferentWorkIsRefusedByAll) {
  run_ranks(2, [&](Job& job) {
    const auto differ = [&] { agree(job, {.signature = static_cast<std::uint64_t>(job.rank()), .what = "the batch"}); };
    EXPECT_THAT(text_of<InvalidArgument>(differ), HasSubstr("the batch of rank 1"));
  });
}

TEST(Job, ARankThatDoesNotComeIsUnavailableAfterTheTimeout) {
  std::atomic<int> waited = 0;
  run_ranks(
      3,
      [&](Job& job) {
        job.set_activity("step 120");
        if (job.rank() == 1) {  // Stands still until the others have given up.
          for (int i = 0; i < 2000 && waited == 0; ++i) std::this_thread::sleep_for(1ms);
          return;
        }
        const std::string text = text_of<Unavailable>([&] { barrier(job); });
        ++waited;
        EXPECT_THAT(text, HasSubstr("in step 120, barrier"));
        EXPECT_FALSE(job.is_open());
        EXPECT_THROW(barrier(job), Unavailable);
      },
      100ms);
  EXPECT_EQ(waited, 2);
}

TEST(Job, ARankThatLeavesIsNoticedByTheOthers) {
  run_ranks(2, [&](Job& job) {
    if (job.rank() == 0) return job.abort(75);
    EXPECT_THAT(text_of<Unavailable>([&] { barrier(job); }), HasSubstr("rank 0"));
  });
}

TEST(Job, OfOneProcessIsTheSameCode) {
  Job job({.engine = "none"});
  EXPECT_EQ(job.rank(), 0);
  EXPECT_EQ(job.size(), 1);
  EXPECT_STREQ(job.engine(), "none");
  EXPECT_FALSE(job.host(0).empty());
  barrier(job);
  EXPECT_FALSE(agree(job, {}).stop);
}

TEST(Job, RefusesEnginesAndTimeoutsThatAreNone) {
  EXPECT_THAT(text_of<InvalidArgument>([] { Job job({.engine = "pigeons"}); }), HasSubstr("pigeons"));
  EXPECT_THAT(text_of<InvalidArgument>([] { Job job({.engine = "none", .timeout = 0ms}); }), HasSubstr("timeout"));
  EXPECT_THROW(make_local_communicators(0), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll::distributed
