#include <cstring>
#include <limits>
#include <vector>

#include "c_call.h"
#include "padded.h"
#include "tests.h"

/// The effects of options, and the errors of functions for options that they do not have.
namespace gpucholmod::test {
namespace {

/// A function for a factor of order 3, in the caller's memory or with memory of its own, and the options that it has.
struct Function {
  const char* name;
  bool triangle, trusted, threads, workspace, progress, device, stream;
  int (*call)(const gpucholmod_options* options, gpucholmod_status* status);
};

constexpr double sound[] = {2, 0, 0, 0.5, 2, 0, 0.5, 0.5, 2}, some_V[] = {0.5, 0.25, -0.5};
constexpr ptrdiff_t second = 1, one_column = 1;

struct Numbers {
  std::vector<double> R{sound, sound + 9};
  double out[9] = {};
  gpucholmod_factor* held = nullptr;
  gpucholmod_modifications what{1,       &one_column, matrix(some_V, 3, 1, 3),
                                nullptr, nullptr,     0,
                                matrix(some_V, 3, 0, 3), matrix(out, 3, 0, 3), nullptr, out, nullptr};
  Numbers() { EXPECT_EQ(create(0, 3, R.data(), 3, 0, &held, nullptr), GPUCHOLMOD_OK); }
  Numbers(const Numbers&) = delete;
  ~Numbers() { gpucholmod_factor_destroy(held); }
  gpucholmod_matrix matrix_of_R() { return matrix(R.data(), 3, 3, 3); }
  gpucholmod_const_matrix read_only() { return gpucholmod_as_const(matrix_of_R()); }
};
const gpucholmod_const_matrix V = matrix(some_V, 3, 1, 3), none = matrix(some_V, 3, 0, 3);

using Options = const gpucholmod_options*;
using Status = gpucholmod_status*;
const std::vector<Function> functions{
    {"update", true, true, true, true, true, true, true,
     [](Options o, Status s) { return gpucholmod_update(Numbers().matrix_of_R(), V, nullptr, 1, nullptr, o, s); }},
    {"update_into", true, true, true, true, true, true, true,
     [](Options o, Status s) {
       Numbers g;
       return gpucholmod_update_into(g.read_only(), matrix(g.out, 3, 3, 3), V, nullptr, 1, nullptr, o, s);
     }},
    {"insert", true, false, true, false, true, true, true,
     [](Options o, Status s) { return gpucholmod_insert(Numbers().matrix_of_R(), 0, none, nullptr, o, s); }},
    {"delete", true, false, true, false, true, true, true,
     [](Options o, Status s) { return gpucholmod_delete(Numbers().matrix_of_R(), &second, 1, nullptr, o, s); }},
    {"shift", true, false, true, false, true, true, true,
     [](Options o, Status s) { return gpucholmod_shift(Numbers().matrix_of_R(), 0, 2, nullptr, o, s); }},
    {"solve", true, false, false, false, false, false, false,
     [](Options o, Status s) {
       Numbers g;
       return gpucholmod_solve(g.read_only(), GPUCHOLMOD_A, matrix(g.out, 3, 1, 3), o, s);
     }},
    {"solve_modified", true, false, true, false, true, false, false,
     [](Options o, Status s) {
       Numbers g;
       return gpucholmod_solve_modified(g.read_only(), &g.what, o, s);
     }},
    {"factorise", true, false, false, false, false, false, false,
     [](Options o, Status s) { return gpucholmod_factorise(Numbers().matrix_of_R(), o, s); }},
    {"inverse", true, false, false, false, false, false, false,
     [](Options o, Status s) {
       Numbers g;
       return gpucholmod_inverse(g.read_only(), matrix(g.out, 3, 3, 3), o, s);
     }},
    {"logdet", true, false, false, false, false, false, false,
     [](Options o, Status s) {
       Numbers g;
       return gpucholmod_logdet(g.read_only(), g.out, o, s);
     }},
    {"rcond", true, false, false, false, false, false, false,
     [](Options o, Status s) {
       Numbers g;
       return gpucholmod_rcond(g.read_only(), g.out, o, s);
     }},
    {"factor_create", true, false, true, false, false, true, true,
     [](Options o, Status s) {
       gpucholmod_factor* made = nullptr;
       const int code = gpucholmod_factor_create(Numbers().read_only(), 0, o, &made, s);
       gpucholmod_factor_destroy(made);
       return code;
     }},
    {"factor_update", false, false, true, false, true, false, true,
     [](Options o, Status s) { return gpucholmod_factor_update(Numbers().held, V, nullptr, 1, nullptr, o, s); }},
    {"factor_insert", false, false, true, false, true, false, true,
     [](Options o, Status s) { return gpucholmod_factor_insert(Numbers().held, 0, none, nullptr, o, s); }},
    {"factor_delete", false, false, true, false, true, false, true,
     [](Options o, Status s) { return gpucholmod_factor_delete(Numbers().held, &second, 1, nullptr, o, s); }},
    {"factor_shift", false, false, true, false, true, false, true,
     [](Options o, Status s) { return gpucholmod_factor_shift(Numbers().held, 0, 2, nullptr, o, s); }},
    {"factor_solve_modified", false, false, true, false, true, false, false,
     [](Options o, Status s) {
       Numbers g;
       return gpucholmod_factor_solve_modified(g.held, &g.what, o, s);
     }},
    {"factor_get", true, false, false, false, false, false, true, [](Options o, Status s) {
       Numbers g;
       return gpucholmod_factor_get(g.held, matrix(g.out, 3, 3, 3), o, s);
     }}};

int go_on(double done, void*) { return !(done >= 0 && done <= 1); }

TEST(COptions, AreHonouredOrRefused) {
  char workspace[1000];
  for (const Function& f : functions) {
    SCOPED_TRACE(f.name);
    gpucholmod_status status;
    const auto answer = [&](bool has, auto&& set) {
      gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
      set(options);
      EXPECT_EQ(f.call(&options, &status), has ? GPUCHOLMOD_OK : GPUCHOLMOD_BAD_ARGUMENT) << status.message;
    };
    EXPECT_EQ(f.call(nullptr, &status), GPUCHOLMOD_OK) << status.message;
    answer(true, [](gpucholmod_options&) {});
    answer(f.triangle, [](gpucholmod_options& o) { o.triangle = GPUCHOLMOD_LOWER; });
    answer(f.trusted, [](gpucholmod_options& o) { o.trusted = 1; });
    answer(f.threads, [](gpucholmod_options& o) { o.threads = 2; });
    answer(f.threads, [](gpucholmod_options& o) { o.threads = GPUCHOLMOD_ALL_THREADS; });
    answer(f.progress, [](gpucholmod_options& o) { o.progress = go_on; });
    answer(f.workspace, [&](gpucholmod_options& o) {
      o.workspace = workspace;
      o.workspace_size = sizeof workspace;
    });
    answer(f.stream, [&](gpucholmod_options& o) { o.stream = workspace; });
    answer(false, [](gpucholmod_options& o) { o.triangle = 2; });
    answer(false, [](gpucholmod_options& o) { o.trusted = 2; });
    answer(false, [](gpucholmod_options& o) { o.threads = -2; });
    answer(false, [](gpucholmod_options& o) { o.device = -3; });
    answer(false, [](gpucholmod_options& o) { o.size -= 1; });
    answer(false, [](gpucholmod_options& o) { o.size = 0; });
    gpucholmod_options on_gpu = GPUCHOLMOD_OPTIONS_INIT;
    on_gpu.device = GPUCHOLMOD_ANY_GPU;
    EXPECT_EQ(f.call(&on_gpu, &status), f.device ? GPUCHOLMOD_NOT_BUILT : GPUCHOLMOD_BAD_ARGUMENT);
    int word = 0;
    answer(false, [&](gpucholmod_options& o) { o.verdict = &word; });
    gpucholmod_options shared = GPUCHOLMOD_OPTIONS_INIT;
    const int ids[] = {0, 1};
    shared.devices = ids;
    EXPECT_EQ(f.call(&shared, &status), GPUCHOLMOD_BAD_ARGUMENT) << "none of them is counted";
    shared.device_count = 2;
    const bool is_create = std::string(f.name) == "factor_create";
    EXPECT_EQ(f.call(&shared, &status), is_create ? GPUCHOLMOD_NOT_BUILT : GPUCHOLMOD_BAD_ARGUMENT);
    shared.device = 0;
    EXPECT_EQ(f.call(&shared, &status), GPUCHOLMOD_BAD_ARGUMENT);
  }
}

/// Programs that were compiled with a later header: an option that they do not set has no effect.
TEST(COptions, MayBeOfALaterHeader) {
  struct Later {
    gpucholmod_options known = GPUCHOLMOD_OPTIONS_INIT;
    void* added = nullptr;
  };
  for (const Function& f : functions) {
    SCOPED_TRACE(f.name);
    Later later;
    later.known.size = sizeof later;
    EXPECT_EQ(f.call(&later.known, nullptr), GPUCHOLMOD_OK);
    later.added = &later;
    EXPECT_EQ(f.call(&later.known, nullptr), GPUCHOLMOD_BAD_ARGUMENT);
    later.known.size = 5000;
    EXPECT_EQ(f.call(&later.known, nullptr), GPUCHOLMOD_BAD_ARGUMENT);
  }
}

/// The state of stop(), which stops at call number `after`, from 0.
struct Stop {
  int after, calls = 0;
};
int stop(double, void* data) {
  Stop& s = *static_cast<Stop*>(data);
  return s.calls++ == s.after;
}

/// Checks that a factor stays as it was, and can be used, whenever a call is stopped.
TEST(COptions, AStoppedCallChangesNothing) {
  const index_t n = 600, k = 4;
  Random random(21);
  const Stored<double> R = well_conditioned(n, random).cast<double>(),
                       V = (random.normal(n, k) / 100).cast<double>();
  const double weights[] = {1, -1, 2, -0.5};
  Stored<double> X = Stored<double>::Zero(n + 1, 1);
  X(3) = 9;
  using Call = int (*)(gpucholmod_factor* held, gpucholmod_matrix R, gpucholmod_const_matrix V,
                       gpucholmod_const_matrix X, const double* weights, Options o, Status s);
  const Call calls[] = {
      [](gpucholmod_factor* held, gpucholmod_matrix R, gpucholmod_const_matrix V, gpucholmod_const_matrix,
         const double* w, Options o, Status s) {
        return held ? gpucholmod_factor_update(held, V, w, 0.9, nullptr, o, s)
                    : gpucholmod_update(R, V, w, 0.9, nullptr, o, s);
      },
      [](gpucholmod_factor* held, gpucholmod_matrix R, gpucholmod_const_matrix, gpucholmod_const_matrix X,
         const double*, Options o, Status s) {
        R.rows = R.cols = X.rows;
        return held ? gpucholmod_factor_insert(held, 3, X, nullptr, o, s) : gpucholmod_insert(R, 3, X, nullptr, o, s);
      },
      [](gpucholmod_factor* held, gpucholmod_matrix R, gpucholmod_const_matrix, gpucholmod_const_matrix,
         const double*, Options o, Status s) {
        return held ? gpucholmod_factor_delete(held, &second, 1, nullptr, o, s)
                    : gpucholmod_delete(R, &second, 1, nullptr, o, s);
      },
      [](gpucholmod_factor* held, gpucholmod_matrix R, gpucholmod_const_matrix, gpucholmod_const_matrix,
         const double*, Options o, Status s) {
        return held ? gpucholmod_factor_shift(held, 0, 9, nullptr, o, s) : gpucholmod_shift(R, 0, 9, nullptr, o, s);
      }};
  for (const Call call : calls)
    for (const bool by_handle : {true, false}) {
      int stops = 0;
      for (int after = 0; after < 50; ++after) {
        Padded<double> memory(R, n + 1);
        memory.data.resize(std::size_t(n + 1) * (n + 1), unused);
        const std::vector<double> before = memory.data;
        gpucholmod_factor* held = nullptr;
        ASSERT_EQ(create(0, n, R.data(), n, n + 1, &held, nullptr), GPUCHOLMOD_OK);
        gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
        Stop state{after};
        options.progress = stop;
        options.progress_data = &state;
        gpucholmod_status status;
        const int code = call(by_handle ? held : nullptr, matrix(memory.data.data(), n, n, n + 1),
                              matrix(V.data(), n, k, n), gpucholmod_as_const(matrix(X.data(), n + 1, 1, n + 1)),
                              weights, &options, &status);
        Stored<double> now(gpucholmod_factor_order(held), gpucholmod_factor_order(held));
        EXPECT_EQ(get(held, 0, now.data(), now.rows(), nullptr), GPUCHOLMOD_OK);
        gpucholmod_factor_destroy(held);
        if (code == GPUCHOLMOD_OK) break;
        ++stops;
        EXPECT_EQ(code, GPUCHOLMOD_STOPPED) << status.message;
        EXPECT_TRUE(same_bits(now, Stored<double>(R.triangularView<Eigen::Upper>())));
        EXPECT_EQ(memory.data, before);
      }
      EXPECT_GT(stops, 0);
    }
}

/// Checks that the number of threads changes no bit.
TEST(COptions, ThreadsDoNotChangeTheResult) {
  const index_t n = 900, k = 12;
  Random random(22);
  const Stored<double> R = well_conditioned(n, random).cast<double>(), V = random.normal(n, k).cast<double>();
  for (const int form : {GPUCHOLMOD_UPPER, GPUCHOLMOD_LOWER}) {
    std::vector<Stored<double>> made;
    for (const int threads : {0, 3, GPUCHOLMOD_ALL_THREADS}) {
      made.push_back(stored(R, form == GPUCHOLMOD_LOWER));
      gpucholmod_options options = triangle(form);
      options.threads = threads;
      ASSERT_EQ(gpucholmod_update(matrix(made.back().data(), n, n, n), matrix(V.data(), n, k, n), nullptr, 1, nullptr,
                                  &options, nullptr),
                GPUCHOLMOD_OK);
      EXPECT_EQ(made.back(), made[0]);
    }
  }
}

}  // namespace
}  // namespace gpucholmod::test
