#include <sys/wait.h>
#include <unistd.h>

#include "process_example.h"

/// Errors that several processes find if one of them fails, leaves or is missing: inst/design/processes.md.
namespace gpucholmod::test {
namespace {

/// Checks that an error that one process alone finds is the error of all, and that the next operation works as without
/// it.
TEST(ProcessesFailures, TheSameErrorInAll) {
  const index_t n = 200;
  Example p(n, 5);
  Doubles bad = p.R;
  bad(3, 100) = INFINITY;
  Threads all(3, 1e-5);
  std::atomic<int> count{0};
  expect_none(in_processes(all, 3, 60, [&](mpi::Team& team) {
    const auto made = [&](const Doubles& R) {
      return mpi::deal_out(team, R.data(), n, Uplo::upper, Precision::double_, allocate);
    };
    const auto infinite = error_of([&] { made(bad); });
    ASSERT_TRUE(infinite);
    EXPECT_EQ(infinite->code(), ErrorCode::not_finite);
    EXPECT_EQ(number(*infinite, "col"), 101);
    EXPECT_EQ(number(*infinite, "process"), 0);
    const cpu::Allocate little = [&](std::size_t bytes) {
      if (team.rank() == 2) throw out_of_memory("full", double(bytes), 0);
      return allocate(bytes);
    };
    const auto full = error_of([&] { mpi::deal_out(team, p.R.data(), n, Uplo::upper, Precision::double_, little); });
    ASSERT_TRUE(full);
    EXPECT_EQ(full->code(), ErrorCode::out_of_memory);
    EXPECT_EQ(number(*full, "process"), 2);
    const std::string other = team.rank() == 1 ? "b" : "a", x(100, team.rank() == 2 ? 'x' : 'y');
    const std::optional<std::string_view> nothing;
    for (const auto& error : {error_of([&] { mpi::agree(team, other, "V", ""); }),
                              error_of([&] { mpi::agree(team, "a", "V", team.rank() > 0 ? "" : nothing); }),
                              error_of([&] { mpi::agree(team, "a", "V", x); })}) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::bad_argument);
    }
    const std::string z(100, 'z');
    const mpi::Bytes told = mpi::agree(team, "a", "V", team.rank() == 1 ? nothing : z);
    EXPECT_EQ(std::string(told.begin(), told.end()), team.rank() == 1 ? z : "");
    for (std::size_t at = 0; at < z.size(); ++at) {  // every byte counts
      std::string changed = z;
      if (team.rank() == 2) ++changed[at];
      EXPECT_TRUE(error_of([&] { mpi::agree(team, "a", "V", changed); })) << at;
    }
    const auto differ = [&](const std::string& one, const std::string& other) {
      return error_of([&] { mpi::agree(team, "a", "V", team.rank() == 2 ? other : one); }).has_value();
    };
    const auto bytes = [](const std::vector<double>& x) {
      return std::string(reinterpret_cast<const char*>(x.data()), sizeof(double) * x.size());
    };
    // An earlier hash was the same for the two of each pair.
    EXPECT_TRUE(differ(bytes({1, 0, 0, 0, 0, -4, 2, 0, 0, 0, 1, 0, 0, 2}),
                       bytes({1, 0, 0, 0, 0, -4, 0, 0, 0, 0, 1, 0, 0, 0})));
    EXPECT_TRUE(differ(bytes({1, 0, 0, 4, 0, 1, 0, 0, -4, 0, 4, 0, 0, 0}),
                       bytes({1, 0, 0, -4, 0, 1, 0, 0, -4, 0, -4, 0, 0, 0})));
    std::string large(2100000, 'z');  // of many pieces, which different numbers of threads hash
    const int threads = team.threads();
    team.set_threads(1 + team.rank());
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = char(i * i % 251);
    EXPECT_FALSE(differ(large, large));
    for (const std::size_t at : {0, 65535, 65536, 131073, 2099999}) {
      std::string changed = large;
      std::swap(changed[at], changed[at / 2 + 1]);
      ASSERT_NE(changed, large) << at;
      EXPECT_TRUE(differ(large, changed)) << at;
    }
    team.set_threads(threads);
    const auto f = made(p.R);
    ++count;
  }));
  EXPECT_EQ(count, 3);
}

/// Checks that an interrupted process gets the exception that interrupted it, that the other processes get an error,
/// and that `begun` is true in place.
TEST(ProcessesFailures, OneIsInterrupted) {
  struct Stop {};
  const index_t n = 500;
  const Example p(n, 5);
  for (const bool in_place : {false, true}) {
    Threads all(3, 1e-5);
    expect_none(in_processes(all, 3, 60, [&](mpi::Team& team) {
      const auto f = mpi::deal_out(team, p.R.data(), n, Uplo::upper, Precision::double_, allocate);
      std::atomic<bool> begun{false};
      std::unique_ptr<HeldFactor> made;
      const Task t = task(n, 5, 0, Precision::double_);
      const Poll poll = [&](double done) {
        if (team.rank() == 1 && done > 0.2) throw Stop();
      };
      const auto modify = [&] { f->modify(p.V.data(), t, in_place ? nullptr : &made, poll, begun); };
      expect_stopped<Stop>(team.rank(), 1, modify);
      EXPECT_EQ(begun, in_place);
      EXPECT_FALSE(made);
      const auto again = mpi::deal_out(team, p.R.data(), n, Uplo::upper, Precision::double_, allocate);
    }));
  }
}

/// Checks that, once all processes have left, each finds that out by itself, without waiting for another process.
TEST(ProcessesFailures, AllHaveLeft) {
  const Example p(100, 3);
  Threads all(3);
  const auto errors = in_processes(all, 3, 60, [&](mpi::Team& team) {
    const auto f = mpi::deal_out(team, p.R.data(), 100, Uplo::upper, Precision::double_, allocate);
    EXPECT_FALSE(team.has_left());
    EXPECT_TRUE(team.leave());
    EXPECT_TRUE(team.has_left());
    f->trace();
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::backend_unavailable);
    EXPECT_EQ(text(*error, "reason"), "ended");
  }
}

/// Checks that a process that dies, ends, does not come, or begins another operation is reported by the others, in
/// time.
TEST(ProcessesFailures, OneIsMissing) {
  const index_t n = 300;
  const Example p(n, 5);
  for (const std::string reason : {"gone", "left", "silent", "out_of_step"}) {
    Threads all(3);
    const Clock clock;
    std::atomic<int> through{0};
    const auto errors = in_processes(all, 3, 60, [&](mpi::Team& team) {
      const auto f = mpi::deal_out(team, p.R.data(), n, Uplo::upper, Precision::double_, allocate);
      std::atomic<bool> begun{false};
      std::unique_ptr<HeldFactor> made;
      const Poll poll = [&](double done) {
        if (team.rank() != 1 || done < 0.1 || reason != "gone") return;
        all.end(1);
        while (through < 2) std::this_thread::yield();
      };
      if (team.rank() == 1 && reason == "left") {
        EXPECT_FALSE(team.leave() && through < 2);
        return;
      }
      if (reason == "silent") team.set_limit(1);
      if (team.rank() == 1 && reason == "silent")
        while (through < 2) std::this_thread::yield();
      try {
        if (team.rank() == 1 && reason == "out_of_step") f->trace();
        else f->modify(p.V.data(), task(n, 5, 0, Precision::double_), &made, poll, begun);
      } catch (const Error&) {
        ++through;
        if (reason == "left") team.leave();
        throw;
      }
    });
    for (const int p : {0, 2}) {
      ASSERT_TRUE(errors[p]) << reason;
      EXPECT_EQ(errors[p]->code(), ErrorCode::process_failed);
      EXPECT_EQ(text(*errors[p], "reason"), reason);
      EXPECT_TRUE(reason == "out_of_step" || number(*errors[p], "process") == 1);
    }
    EXPECT_LT(clock.seconds(), 20);
  }
}

/// Checks that a message of another operation is never read, whichever process comes first, and also if nothing is sent
/// but how each operation has ended.
TEST(ProcessesFailures, OutOfStepFromTheBeginning) {
  for (const bool sends : {true, false})
    for (const int late : {0, 1, 2}) {
      Threads all(3);
      std::atomic<int> there{0};
      const auto errors = in_processes(all, 3, 60, [&](mpi::Team& team) {
        while (team.rank() == late && there < 2) std::this_thread::yield();
        const bool other = team.rank() == 0;
        team.together(other ? mpi::Operation::collect : mpi::Operation::agree, 0, [&]() -> index_t {
          const char told[64] = {};
          if (sends && team.rank() != late) {
            team.send(team.others(), -1000000, told, 1);
            ++there;
            team.exchange(told, 1);
          } else if (sends) {
            for (const mpi::Bytes& one : team.exchange(told, sizeof told)) EXPECT_EQ(one.size(), sizeof told);
          } else {
            ++there;
          }
          return -1;
        });
      });
      for (const auto& error : errors) {
        ASSERT_TRUE(error) << sends << late;
        EXPECT_EQ(error->code(), ErrorCode::process_failed);
        EXPECT_EQ(text(*error, "reason"), "out_of_step");
      }
    }
}

/// Processes that leave a call before an operation, between two operations, or behind the last. In an operation of that
/// call the other process gets the error; otherwise it never learns of it. All processes are in step afterwards.
TEST(ProcessesFailures, OneLeavesACall) {
  const auto refusal = [](int rank) {
    return Error(ErrorCode::process_failed, "told",
                 {{"process", double(rank)}, {"reason", "refused"}, {"condition", "why"}});
  };
  for (const int operations : {0, 1, 2}) {
    Threads all(3, 1e-5);
    std::atomic<int> through{0};
    expect_none(in_processes(all, 3, 60, [&](mpi::Team& team) {
      const auto meet = [&] {
        team.together(mpi::Operation::flags, 0, [&] { return team.largest(team.rank()) == 2 ? index_t(-1) : 0; });
      };
      const bool leaves = team.rank() > 0;
      team.begin_call();
      for (int i = 0; i < (leaves ? operations : 2); ++i)
        if (const auto error = error_of(meet)) {
          EXPECT_FALSE(leaves);
          EXPECT_EQ(i, operations);
          EXPECT_EQ(number(*error, "process"), 1);
          EXPECT_EQ(text(*error, "condition"), "why");
          break;
        }
      if (leaves) {
        const auto error = error_of([&] { team.refuse(refusal(team.rank())); });
        ASSERT_TRUE(error);
        EXPECT_EQ(number(*error, "process"), 1);
      }
      EXPECT_FALSE(operations < 2 && error_of([&] { team.refuse(refusal(team.rank())); })) << "all know already";
      team.begin_call();
      EXPECT_FALSE(error_of(meet));
      ++through;
    }));
    EXPECT_EQ(through, 3);
  }
}

/// Checks that a process that leaves the call before a modification in place leaves the factor unchanged, in all
/// processes.
TEST(ProcessesFailures, OneLeavesAModificationInPlace) {
  const index_t n = 300;
  const Example p(n, 5);
  for (const index_t removed : {0, 1}) {
    Threads all(3, 1e-5);
    expect_none(in_processes(all, 3, 60, [&](mpi::Team& team) {
      const auto f = mpi::deal_out(team, p.R.data(), n, Uplo::upper, Precision::double_, allocate);
      std::atomic<bool> begun{false};
      team.begin_call();
      const auto error = error_of([&] {
        const Error why(ErrorCode::process_failed, "told", {{"process", 2.0}, {"reason", "refused"}});
        if (team.rank() == 2) team.refuse(why);
        else f->modify(p.V.data(), task(n, 5, removed, Precision::double_), nullptr, no_poll, begun);
      });
      EXPECT_TRUE(error && text(*error, "reason") == "refused");
      EXPECT_FALSE(begun);
      team.begin_call();
      const Doubles R = whole(*f, team.rank()), before = p.R.triangularView<Eigen::Upper>();
      EXPECT_TRUE(team.rank() != 0 || same_bits(R, before));
    }));
  }
}

/// Checks that an operation that is begun within another one fails, and that the outer operation goes on.
TEST(ProcessesFailures, OneBeginsAnotherOperationWithin) {
  Threads all(2);
  expect_none(in_processes(all, 2, 60, [&](mpi::Team& team) {
    const auto nothing = []() -> index_t { return -1; };
    team.together(mpi::Operation::flags, 0, [&]() -> index_t {
      if (team.rank() == 0) {
        const auto within = error_of([&] { team.together(mpi::Operation::flags, 0, nothing); });
        EXPECT_TRUE(within && text(*within, "reason") == "busy");
        const auto call = error_of([&] { team.begin_call(); });
        EXPECT_TRUE(call && text(*call, "reason") == "busy");
        team.refuse(*call);
      }
      EXPECT_EQ(team.largest(team.rank()), 1);
      return -1;
    });
  }));
}

/// Checks that a process that is forked from one of the processes never takes part in its place.
TEST(ProcessesFailures, OneIsForked) {
  const Example p(50, 3);
  Threads all(1);
  Threads::Process transport(all, 0);
  mpi::Team team(transport, [] {});
  const auto f = mpi::deal_out(team, p.R.data(), 50, Uplo::upper, Precision::double_, allocate);
  const pid_t child = fork();
  if (child == 0) {
    std::vector<double> numbers(50);
    int refused = 0;
    const std::vector<std::function<void()>> uses{
        [&] { f->trace(); }, [&] { f->diagonal(numbers.data()); }, [&] { f->copy(); }, [&] { team.begin_call(); },
        [&] { f->solve(TriangularSolve::both, numbers.data(), 1); }};
    for (const auto& use : uses) {
      const auto error = error_of(use);
      refused += error && error->code() == ErrorCode::backend_unavailable && text(*error, "reason") == "forked";
    }
    _exit(refused);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_GT(f->trace(), 0);
}

}  // namespace
}  // namespace gpucholmod::test
