#pragma once

#include <fuzzer/FuzzedDataProvider.h>
#include <gpucholmod.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

/// What calls are given: matrices, options, and memory that may have to stay as it is.
namespace gpucholmod::fuzz {

using index_t = std::ptrdiff_t;
using Exact = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;
using Bytes = std::vector<unsigned char>;

constexpr index_t huge = std::numeric_limits<index_t>::max();

/// What an input chooses: by its bytes, and when they are used up by random numbers, whose seed it has given.
class Choices {
 public:
  Choices(const unsigned char* data, std::size_t size)
      : bytes_(data, size), random_(bytes_.ConsumeIntegral<unsigned>()) {}

  index_t of(index_t least, index_t most) {
    if (bytes_.remaining_bytes() > 0) return bytes_.ConsumeIntegralInRange(least, most);
    return std::uniform_int_distribution<index_t>(least, most)(random_);
  }
  bool one_in(index_t many) { return of(0, many - 1) == 1; }
  index_t size() { return one_in(8) ? of(0, 70) : of(0, 6); }
  int type() { return int(of(GPUCHOLMOD_DOUBLE, GPUCHOLMOD_FLOAT)); }

  double moderate() { return std::uniform_real_distribution<double>(-1, 1)(random_); }
  /// Returns a moderate number, or, if `wild`, now and then one that is not.
  double number(bool wild) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    static constexpr double special[] = {0.0,    -0.0,  infinite, -infinite, std::numeric_limits<double>::quiet_NaN(),
                                         1e-310, 1e308, -1e308,   1e-160,    1e160,
                                         1e-40,  4e38,  1e-20,    -1e20};
    if (!wild || random_() % 8 != 0) return moderate();
    return special[random_() % (sizeof special / sizeof *special)];
  }

 private:
  FuzzedDataProvider bytes_;
  std::mt19937 random_;
};

/// A matrix in memory that ends where the matrix does. What is between its columns is NaN.
struct Numbers {
  index_t rows, cols, ld;
  int type;
  Bytes bytes;

  Numbers(index_t rows, index_t cols, index_t gap, int type)
      : rows(rows), cols(cols), ld(rows + gap), type(type),
        bytes(cols > 0 ? (ld * (cols - 1) + rows) * scalar() : 0, 255) {}

  std::size_t scalar() const { return type == GPUCHOLMOD_DOUBLE ? sizeof(double) : sizeof(float); }
  unsigned char* at(index_t i, index_t j) { return bytes.data() + (i + j * ld) * scalar(); }
  const unsigned char* at(index_t i, index_t j) const { return bytes.data() + (i + j * ld) * scalar(); }
  double operator()(index_t i, index_t j) const {
    double wide;
    float narrow;
    if (type == GPUCHOLMOD_DOUBLE) return std::memcpy(&wide, at(i, j), sizeof wide), wide;
    return std::memcpy(&narrow, at(i, j), sizeof narrow), narrow;
  }
  void set(index_t i, index_t j, double x) {
    constexpr double most = std::numeric_limits<float>::max();
    const float narrow = float(std::isfinite(x) ? std::clamp(x, -most, most) : x);
    if (type == GPUCHOLMOD_DOUBLE)
      std::memcpy(at(i, j), &x, sizeof x);
    else
      std::memcpy(at(i, j), &narrow, sizeof narrow);
  }
  void fill(Choices& choose, bool wild) {
    for (index_t j = 0; j < cols; ++j)
      for (index_t i = 0; i < rows; ++i) set(i, j, choose.number(wild));
  }
  gpucholmod_matrix given() { return {bytes.data(), rows, cols, ld, type}; }
  Exact exact() const {
    Exact A(rows, cols);
    for (index_t j = 0; j < cols; ++j)
      for (index_t i = 0; i < rows; ++i) A(i, j) = (*this)(i, j);
    return A;
  }
};

/// Returns numbers that a call is given as a plain array of doubles.
inline Exact exact(const std::vector<double>& x) {
  return Eigen::Map<const Eigen::VectorXd>(x.data(), index_t(x.size())).cast<long double>();
}

/// Describes a matrix wrongly, and so that no function may take it for a larger one that is in memory.
inline void spoil(Choices& choose, gpucholmod_matrix& A) {
  switch (choose.of(0, 8)) {
    case 0: A.rows += 1; break;
    case 1: A.rows = -1 - A.rows; break;
    case 2: A.cols = A.rows > 0 && choose.one_in(2) ? huge : -1; break;
    case 3: A.ld = A.rows - 1; break;
    case 4: A.ld = huge - choose.of(0, 1); break;
    case 5: A.rows = A.ld = huge; break;
    case 6: A.type = A.type == GPUCHOLMOD_DOUBLE ? GPUCHOLMOD_FLOAT : 0; break;
    case 7: A.type = int(choose.of(-1, 0)); break;
    default: A.data = nullptr;
  }
}

/// The options of a call, and memory that is known not to have changed.
struct Call {
  Choices& choose;
  bool sound = true;     ///< nothing is wrong with what is given, but that the matrix may not be positive definite
  bool moderate = true;  ///< numbers are finite, and far from the ends of the range
  bool spoiled = false;  ///< a matrix is described wrongly
  bool stops = false;    ///< the progress function stops the call, if it is called
  bool has_options;
  gpucholmod_status status;

  Call(Choices& choose, bool has_triangle) : choose(choose), has_options(!choose.one_in(2)) {
    std::memset(&status, 255, sizeof status);
    if (has_triangle && has_options) options_.known.triangle = int(choose.of(0, 1));
    if (has_options && choose.one_in(3)) vary();
  }
  Call(const Call&) = delete;

  int triangle() const { return has_options ? options_.known.triangle : GPUCHOLMOD_UPPER; }
  bool is_trusted() const { return has_options && options_.known.trusted == 1; }
  const gpucholmod_options* options() const { return has_options ? &options_.known : nullptr; }
  /// Decides whether numbers of an argument are special.
  bool is_wild() {
    const bool wild = choose.one_in(8);
    if (wild) sound = moderate = false;
    return wild;
  }
  /// Returns what is given for a matrix, which may be something wrong.
  gpucholmod_matrix given(Numbers& A) {
    gpucholmod_matrix said = A.given();
    watch(A.bytes);
    if (!choose.one_in(24)) return said;
    sound = moderate = false;
    spoiled = true;
    spoil(choose, said);
    return said;
  }
  /// The same of a matrix that the call does not change.
  gpucholmod_const_matrix read_only(Numbers& A) {
    const gpucholmod_matrix said = given(A);
    before_.back().is_constant = true;
    return gpucholmod_as_const(said);
  }
  template <class T>
  void watch(const std::vector<T>& memory) {
    const auto* const first = reinterpret_cast<const unsigned char*>(memory.data());
    before_.push_back({first, Bytes(first, first + sizeof(T) * memory.size()), false});
  }

  void require(bool holds, const char* what) const {
    if (holds) return;
    std::fprintf(stderr, "%s; code %d, pivot %td, '%s': %s\n", what, status.code, status.pivot, status.argument,
                 status.message);
    std::abort();
  }
  /// Looks at what is true of every call. Returns whether it has succeeded.
  bool has_succeeded(int code) const {
    require(status.code == code && code >= GPUCHOLMOD_OK && code <= GPUCHOLMOD_STOPPED, "the code is none");
    require(code != GPUCHOLMOD_INTERNAL && code != GPUCHOLMOD_CUDA_FAILURE, "the core is at fault");
    require(std::memchr(status.message, 0, sizeof status.message), "the message has no end");
    require(std::memchr(status.argument, 0, sizeof status.argument), "the argument has no end");
    require((code == GPUCHOLMOD_OK) == (status.message[0] == 0), "there is a message if the call fails");
    require(status.pivot >= 0 && status.row >= 0 && status.col >= 0 && status.member >= 0, "a place is negative");
    require((code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE) <= (status.pivot > 0), "there is no pivot");
    require(code != GPUCHOLMOD_STOPPED || stops, "nothing has stopped the call");
    for (const Before& before : before_)
      require(!before.is_constant || before.is_now(), "what is only read has changed");
    return code == GPUCHOLMOD_OK;
  }
  void require_unchanged() const {
    for (const Before& before : before_) require(before.is_now(), "memory has changed");
  }

 private:
  /// Memory, and what it was.
  struct Before {
    const unsigned char* memory;
    Bytes bytes;
    bool is_constant;
    bool is_now() const { return bytes.empty() || std::memcmp(memory, bytes.data(), bytes.size()) == 0; }
  };

  static int progress(double done, void* data) {
    Call& call = *static_cast<Call*>(data);
    call.require(done >= 0 && done <= 1, "progress is no share");
    return call.stops;
  }
  void vary() {
    gpucholmod_options& o = options_.known;
    sound = false;
    if (choose.one_in(3)) o.trusted = int(choose.of(-1, 2));
    if (choose.one_in(3)) o.threads = int(choose.of(-2, 3));
    if (choose.one_in(6)) o.device = int(choose.of(-3, 0));
    if (choose.one_in(8)) o.triangle = int(choose.of(-1, 2));
    if (choose.one_in(6)) o.stream = &options_;
    if (choose.one_in(8)) o.size += choose.one_in(2) ? sizeof options_.later : std::size_t(-choose.of(0, 8));
    if (choose.one_in(8)) options_.later[choose.of(0, 7)] = 1;
    if (choose.one_in(3)) {
      workspace_.resize(choose.of(1, 3000));
      const std::size_t skipped = choose.one_in(2) ? 0 : workspace_.size() % 4;  // aligned or not
      o.workspace = workspace_.data() + skipped;
      o.workspace_size = workspace_.size() - skipped;
    }
    if (choose.one_in(3)) {
      stops = choose.one_in(2);
      o.progress = progress;
      o.progress_data = this;
    }
  }

  struct {
    gpucholmod_options known = GPUCHOLMOD_OPTIONS_INIT;
    unsigned char later[8] = {};  ///< fields of a later header
  } options_;
  Bytes workspace_;
  std::vector<Before> before_;
};

}  // namespace gpucholmod::fuzz
