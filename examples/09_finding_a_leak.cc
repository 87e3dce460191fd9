// Finding a leak, step by step: see what grows, ask what holds it, fix it, and keep a check.
#include <plimsoll/plimsoll.h>

#include <iostream>
#include <map>

namespace pl = plimsoll;

// Remembers its last results for each user and forgets to release them.
class Recommender {
 public:
  pl::Tensor score(int user, const pl::Tensor& features) {
    pl::NameScope scope("recommender");
    pl::Tensor result = pl::tidy([&] { return pl::softmax(pl::matmul(features, weights_)); });
    history_.emplace(user, result);  // The leak: one entry more for every call.
    return result;
  }
  void forget() { history_.clear(); }

 private:
  pl::Variable weights_{pl::ones({16, 4}), {.name = "weights"}};
  std::multimap<int, pl::Tensor> history_;
};

int main() {
  Recommender recommender;
  const pl::Tensor features = pl::ones({1, 16});
  recommender.score(0, features);  // Warm up.

  // 1. What is there more of after a few calls?
  pl::Growth growth;
  pl::Tensor last;
  for (int i = 0; i < 3; ++i) last = recommender.score(i, features);
  std::cout << "1. what grew in three calls:\n";
  const std::vector<pl::GrowthRow> rows = growth.show();

  // 2. Which tensors are those?
  std::cout << "\n2. the live tensors of that scope:\n";
  for (const pl::LiveTensor& t : pl::live_tensors())
    if (t.scope == rows.at(0).scope) std::cout << "   " << t.op << " " << t.shape << ", " << t.bytes << " bytes\n";

  // 3. Who holds one of them?
  std::cout << "\n3. who holds the last result:\n" << pl::who_holds(last).to_string() << "\n";

  // 4. Two handles: ours, and one in the history. That is the leak, and this is the fix.
  recommender.forget();
  last = pl::Tensor();

  // 5. A check that stays, in a test.
  pl::LeakCheck check;
  for (int i = 0; i < 3; ++i) recommender.score(i, features);
  recommender.forget();
  check.expect_none();
  std::cout << "5. nothing is left behind\n";
  return rows.size() == 1 && rows[0].count == 3 ? 0 : 1;
}
