#include <gradus/distributed/watch.h>

#include <algorithm>
#include <charconv>

namespace gradus::distributed {
namespace {

constexpr milliseconds kBeat{250};
constexpr milliseconds kDetour{3000};           // from the end of a rank to the news of it, at most
constexpr std::chrono::seconds kLongEnough{5};  // for a collective in which all ranks take part to end

std::string at_key(int rank) { return str("at/", rank); }
std::string knows_key(int rank) { return str("knows/", rank); }
std::string leaving_key(int rank) { return str("leaving/", rank); }

constexpr char kSeparator = '\x1f';

std::string packed(const Failure& f) { return f.code + kSeparator + f.text + kSeparator + f.hint; }

Failure unpacked(const std::string& text) {
  const size_t first = text.find(kSeparator), second = text.find(kSeparator, first + 1);
  return {text.substr(0, first), text.substr(first + 1, second - first - 1), text.substr(second + 1)};
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += str(i ? ", " : "", ranks[i]);
  return text;
}

}  // namespace

void Watch::start(CollectiveQueue& queue) {
  thread_ = std::thread([this, &queue] { run(queue); });
}

void Watch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watch::run(CollectiveQueue& queue) {
  std::unique_lock lock(mutex_);
  while (!stopping_ && !failure_) {
    lock.unlock();
    std::optional<Failure> found;
    try {
      found = look(queue);
    } catch (const Error& error) {
      found = failure_of(error), found->code = "E-RANK-LOST";  // the store cannot be reached
    }
    if (found) {
      acknowledge();
      queue.fail(*found);
    }
    lock.lock();
    if (found) failure_ = found, changed_.notify_all();
    changed_.wait_for(lock, kBeat, [&] { return stopping_ || failure_; });
  }
  if (failure_) queue.fail(*failure_);
}

std::optional<Failure> Watch::look(const CollectiveQueue& queue) {
  const auto at = queue.position();
  publish(at);
  if (const auto told = store_->try_get("failure")) return unpacked(*told);
  std::optional<Failure> found = look_at_ranks();
  if (!found) found = look_at_collective(at);
  return found ? std::optional(report(*found)) : std::nullopt;
}

std::optional<Failure> Watch::look_at_ranks() {
  std::string text;
  for (const LostRank& lost : store_->lost(limits_.silence))
    text += str(text.empty() ? "" : ", ", "rank ", lost.rank, " ", lost.why);
  if (text.empty()) return {};
  return Failure{"E-RANK-LOST", text, "the first error is in the output of that rank"};
}

std::optional<Failure> Watch::look_at_collective(const CollectiveQueue::Position& at) {
  if (!at.running || at.time < std::min<Clock::duration>(kLongEnough, limits_.timeout)) return {};
  if (const auto ranks = leaving(); !ranks.empty())
    return Failure{"E-COLLECTIVE", str(ranks_text(ranks), " called destroy_process_group() instead"),
                   "every rank must call the same collectives; have all ranks equally many batches?"};
  if (at.time < limits_.timeout) return {};
  return Failure{
      "E-TIMEOUT", str(missing(at), " within ", limits_.timeout.count() / 1000.0, " s"),
      "every rank must call the same collectives; a rank that works longer needs a longer timeout"};
}

std::vector<int> Watch::leaving() {
  std::vector<int> ranks;
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_ && store_->try_get(leaving_key(rank))) ranks.push_back(rank);
  return ranks;
}

// Each rank says which collective it is at: "17 all_reduce …".
std::string Watch::missing(const CollectiveQueue::Position& at) {
  std::vector<int> ranks;
  std::string others;
  for (int rank = 0; rank < size_; ++rank) {
    const std::string there = store_->try_get(at_key(rank)).value_or("0 ");
    int64_t number = 0;
    std::from_chars(there.data(), there.data() + there.size(), number);
    if (rank == rank_ || number >= at.number) continue;
    ranks.push_back(rank);
    others += str(", the last of rank ", rank, " was ", number ? there.substr(there.find(' ') + 1) : "none");
  }
  if (ranks.empty()) return "it did not end";
  return str(ranks_text(ranks), " did not take part", others, ",");
}

void Watch::publish(const CollectiveQueue::Position& at) {
  std::string text = str(at.number, " ", at.what);
  if (text == published_) return;
  store_->set(at_key(rank_), text);
  published_ = std::move(text);
}

// The first to tell is believed by all.
Failure Watch::report(Failure failure) {
  if (store_->add("failures", 1) == 1) {
    store_->set("failure", packed(failure));
    return failure;
  }
  return unpacked(store_->get("failure", kDetour));
}

bool Watch::all_know() {
  std::vector<bool> knows(static_cast<size_t>(size_));
  for (int rank = 1; rank < size_; ++rank) knows[rank] = store_->try_get(knows_key(rank)).has_value();
  for (const LostRank& lost : store_->lost(limits_.silence)) knows[lost.rank] = true;
  return std::all_of(knows.begin() + 1, knows.end(), [](bool known) { return known; });
}

// Rank 0 may serve the store, and end as soon as it hears of the failure: so it hears of it last.
void Watch::acknowledge() {
  try {
    if (rank_ != 0) return store_->set(knows_key(rank_), "");
    for (const auto end = Clock::now() + kDetour; !all_know() && Clock::now() < end;)
      std::this_thread::sleep_for(milliseconds(10));
  } catch (const Error&) {  // nobody can be told
  }
}

Failure Watch::explain(const std::exception& error) {
  Failure failure{"E-RANK-LOST", str("the connection to another rank broke: ", error.what()), ""};
  if (const auto* ours = dynamic_cast<const Error*>(&error)) {
    failure = failure_of(*ours);
  } else {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limits_.silence + kDetour, [&] { return stopping_ || failure_; });
    if (failure_) return *failure_;
  }
  try {
    failure = report(failure);
  } catch (const Error&) {  // nobody can be told
  }
  acknowledge();
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  changed_.notify_all();
  return failure;
}

void Watch::farewell() {
  store_->set(leaving_key(rank_), "");
  store_->add("leaving", 1);
  std::unique_lock lock(mutex_);
  const auto end = Clock::now() + limits_.timeout;
  while (!failure_ && Clock::now() < end) {
    lock.unlock();
    const bool all = store_->try_get("leaving") == str(size_);
    lock.lock();
    if (all) return;
    changed_.wait_for(lock, milliseconds(10));
  }
}

}  // namespace gradus::distributed
