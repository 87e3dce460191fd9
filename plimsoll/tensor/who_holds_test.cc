#include "plimsoll/tensor/who_holds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/text.h"
#include "plimsoll/tensor/holder.h"
#include "plimsoll/tensor/name_scope.h"
#include "plimsoll/tensor/tensor_testing.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Holds a tensor's bytes under a name, as variables and tapes do.
class Shelf final : public Holder {
 public:
  Shelf(const Tensor& tensor, std::string name, int times = 1) : name_(std::move(name)) {
    for (int i = 0; i < times; ++i) held_.push_back(StorageRef::share(tensor.record()->storage));
    enrol();
  }
  ~Shelf() override { retire(); }
  std::string describe() const override { return "shelf \"" + name_ + '"'; }
  void visit_held(Visit f) const override {
    for (const StorageRef& storage : held_) f(*storage, "top");
  }

 private:
  std::string name_;
  std::vector<StorageRef> held_;
};

TEST(WhoHolds, CountsTheHandlesOfTheProgram) {
  const Tensor x = some({1, 4});
  EXPECT_THAT(who_holds(x).paths(), ElementsAre("tensor (1, 4) <- 1 handle"));
  const Tensor copy = x, another = x;
  EXPECT_THAT(who_holds(x).paths(), ElementsAre("tensor (1, 4) <- 3 handles"));
}

TEST(WhoHolds, NamesHoldersAndWhatTheyHoldItFor) {
  const Tensor x = some({1, 4}), other = some();
  const Shelf shelf(x, "kernel"), unrelated(other, "other"), tape(x, "tape", 3);
  EXPECT_THAT(who_holds(x).paths(),
              ElementsAre("tensor (1, 4) <- 1 handle", "tensor (1, 4) <- shelf \"tape\": top (3 times)",
                          "tensor (1, 4) <- shelf \"kernel\": top"));
}

TEST(WhoHolds, FollowsViewsToTheirHandles) {
  const Tensor x = some({2, 2});
  set_name(x, "matrix");
  const Tensor view = make_view(x, "Reshape", {4}, 0), copy = view;
  EXPECT_THAT(who_holds(x).paths(), ElementsAre("tensor \"matrix\" (2, 2) <- 1 handle",
                                                "tensor \"matrix\" (2, 2) <- view (4,) <- 2 handles"));
  EXPECT_THAT(who_holds(view).paths(),
              ElementsAre("tensor (4,) <- 2 handles", "tensor (4,) <- tensor \"matrix\" (2, 2) <- 1 handle"));
}

TEST(WhoHolds, LeavesAVariablesOwnTensorToTheVariable) {
  const Tensor own = some({3});
  own.record()->set(TensorRecord::kVariable);
  const Tensor snapshot = make_view(own, "variable", {3}, 0);
  class Owner final : public Holder {
   public:
    explicit Owner(const Tensor& tensor) : tensor_(tensor) { enrol(); }
    ~Owner() override { retire(); }
    std::string describe() const override { return "variable \"kernel\""; }
    void visit_held(Visit f) const override { f(*tensor_.record()->storage, "its value"); }
    const Tensor& tensor_;
  } const variable(own);
  EXPECT_THAT(who_holds(snapshot).paths(),
              ElementsAre("tensor (3,) <- 1 handle", "tensor (3,) <- variable \"kernel\": its value"));
}

TEST(WhoHolds, NamesPinnedDataAndReferencesOfCodeAtWork) {
  const Tensor x = some({2});
  const auto data = x.data<float>(), more = x.data<float>();
  const StorageRef hidden = StorageRef::share(x.record()->storage);
  EXPECT_THAT(who_holds(x).paths(), ElementsAre("tensor (2,) <- 1 handle", "tensor (2,) <- 2 data views",
                                                "tensor (2,) <- 1 other reference"));
}

TEST(WhoHolds, SaysWhichScopeReleasesIt) {
  const TidyScope outer;
  const Tensor x = some({2});
  {
    const TidyScope inner;
    const Tensor y = some({3});
    EXPECT_THAT(who_holds(y).paths(),
                ElementsAre("tensor (3,) <- 1 handle", "tensor (3,) <- tidy scope, the innermost"));
    EXPECT_THAT(who_holds(x).paths().at(1), HasSubstr("tidy scope, 1 further out"));
    std::thread([&] { EXPECT_THAT(who_holds(x).paths().at(1), HasSubstr("another thread")); }).join();
  }
  keep(x);
  EXPECT_THAT(who_holds(x).paths(), ElementsAre("tensor (2,) <- 1 handle", "tensor (2,) <- keep()"));
}

TEST(WhoHolds, WorksForADisposedTensorAndSaysSo) {
  const Tensor x = some({2}), copy = x;
  const StorageRef held = StorageRef::share(x.record()->storage);
  x.dispose();
  const Holders who = who_holds(x);
  EXPECT_THAT(who.paths(), ElementsAre("tensor (2,), disposed <- 2 handles"));
  EXPECT_THAT(who.to_string(), HasSubstr("disposed"));
  EXPECT_THAT(who.to_svg(), HasSubstr("disposed"));
}

TEST(WhoHolds, RefusesAnEmptyHandle) { EXPECT_THROW(who_holds(Tensor()), InvalidArgument); }

TEST(WhoHolds, WritesAnIndentedList) {
  const NameScope scope("block1");
  const Tensor x = some({2, 2}, "Relu"), view = make_view(x, "Reshape", {4}, 0);
  const Shelf shelf(x, "kernel");
  EXPECT_EQ(who_holds(x).to_string(),
            "tensor (2, 2): float32, made by Relu in \"block1\"; buffer of 16 B on CPU:0\n"
            "  <- 1 handle: of the program\n"
            "  <- view (4,): float32, made by Reshape in \"block1\"\n"
            "    <- 1 handle: of the program\n"
            "  <- shelf \"kernel\": top\n");
}

TEST(WhoHolds, SaysWhoseMemoryTheBufferIs) {
  float theirs[2] = {};
  const Tensor wrapped = make_tensor_on(Storage::wrap(current_device(), theirs, 8, {}), 0, {2}, f32, {.op = "wrap"});
  const Tensor lazy = make_tensor_on(Storage::take_lazily(current_device(), 8, {}, {}), 0, {2}, f32, {.op = "zeros"});
  EXPECT_THAT(who_holds(wrapped).to_string(), HasSubstr("the program's own memory"));
  EXPECT_THAT(who_holds(lazy).to_string(), HasSubstr("not taken yet"));
}

TEST(WhoHolds, WritesDotForGraphviz) {
  const Tensor x = some({2});
  const Shelf shelf(x, "a\\b");
  const std::string path = testing::TempDir() + "holders.dot";
  who_holds(x).write_dot(path);
  const std::string dot = read_file(path, 1 << 20);
  EXPECT_THAT(dot, AllOf(HasSubstr("digraph holders {"),
                         HasSubstr("n1 [label=\"tensor (2,)\\nfloat32, made by some\", penwidth=3]"),
                         HasSubstr("n1 -> n0;"), HasSubstr("shelf \\\"a\\\\b\\\"")));
  EXPECT_THROW(who_holds(x).write_dot(testing::TempDir() + "no such directory/holders.dot"), NotFound);
}

TEST(WhoHolds, DrawsAPicture) {
  const NameScope scope("block1");
  const Tensor x = some({64, 128}, "Relu"), view = make_view(x, "Reshape", {8192}, 0), copy = view;
  keep(x);
  const Shelf shelf(x, "<kernel> & \"more\""), tape(x, "tape", 3);
  const auto data = x.data<float>();
  const std::string path = testing::TempDir() + "holders.svg";
  who_holds(x).write_svg(path);
  const std::string svg = read_file(path, 1 << 20);
  EXPECT_THAT(svg, AllOf(HasSubstr("<svg xmlns"), HasSubstr("</svg>"), HasSubstr("32.0 KiB"),
                         HasSubstr("&lt;kernel&gt; &amp; &quot;more&quot;"), HasSubstr("2 handles"),
                         Not(HasSubstr("<kernel>"))));
  EXPECT_THROW(who_holds(x).write_svg(testing::TempDir() + "no such directory/holders.svg"), NotFound);
}

TEST(WhoHolds, PicturesAreValidWhateverNamesAre) {
  const Tensor x = some({64}, "Relu");
  const Shelf latin(x, "caf\xe9 \x01\xff\xfe"), cut(x, std::string(55, 'x') + "\xc3\xb6\xc3");
  const Holders who = who_holds(x);
  for (const std::string& text : {who.to_svg(), who.to_dot()}) {
    EXPECT_EQ(valid_utf8(text), text);
    EXPECT_EQ(text.find('\x01'), std::string::npos);
    EXPECT_THAT(text, HasSubstr("caf\xef\xbf\xbd"));
  }
}

TEST(WhoHolds, DrawsManyHoldersAsFewAndACount) {
  const Tensor x = some({4});
  std::vector<Tensor> views;
  for (int i = 0; i < 100; ++i) views.push_back(make_view(x, "Reshape", {2, 2}, 0));
  const Holders who = who_holds(x);
  EXPECT_EQ(who.paths().size(), 101u);
  EXPECT_THAT(who.to_svg(), HasSubstr("and 61 more"));
}

}  // namespace
}  // namespace plimsoll
