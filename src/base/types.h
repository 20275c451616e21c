#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

namespace gpucholmod {

using index_t = std::ptrdiff_t;

/// A view of a column-major rows x cols matrix that the view does not own; leading dimension ld >= rows.
template <class T>
struct MatrixView {
  T* data;
  index_t rows;
  index_t cols;
  index_t ld;

  template <class U, class = std::enable_if_t<std::is_same_v<U, T> && !std::is_const_v<T>>>
  operator MatrixView<const U>() const { return {data, rows, cols, ld}; }
  T& operator()(index_t i, index_t j) const { return data[i + j * ld]; }
  T* col(index_t j) const { return data + j * ld; }
  MatrixView block(index_t i, index_t j, index_t m, index_t n) const {
    return {data + i + j * ld, m, n, ld};
  }
};

/// The base of classes that own something and are not copied.
struct NotCopied {
  NotCopied() = default;
  NotCopied(const NotCopied&) = delete;
  NotCopied& operator=(const NotCopied&) = delete;
};

/// Calls f() when its scope ends, by a return or by a throw.
template <class F>
class Finally : NotCopied {
 public:
  explicit Finally(F f) : f_(std::move(f)) {}
  ~Finally() { f_(); }

 private:
  F f_;
};

enum class Sign { update, downdate };
enum class Uplo { upper, lower };
enum class Precision { double_, single };
template <class T>
constexpr Precision precision_of = sizeof(T) == 8 ? Precision::double_ : Precision::single;

/// The sets of vector instructions that the CPU's kernels are compiled for.
enum class Instructions { automatic, plain, avx2, avx512 };

/// The order of the two outer loops of the reference sweeps; both orders do the same arithmetic.
///   a  right-looking: rotation i is applied along row i of R as soon as it is known (stride ld)
///   b  left-looking: column j receives rotations 0 .. j-1, then yields rotation j (stride 1)
enum class LoopOrder { a, b };

/// The function that a computation calls now and then, from the thread that made the call; `done` is the share of the
/// work that is done, 0 to 1. The function may throw to abandon the computation (Ctrl-C).
using Poll = std::function<void(double done)>;
/// The poll of a call that nobody watches.
inline const Poll unwatched = [](double) {};

/// Returns the share of the work on an upper triangle of order n that lies in its first i rows.
inline double share_of_rows(index_t i, index_t n) { return 1 - (1 - double(i) / n) * (1 - double(i) / n); }
/// Returns the share of the work on an upper triangle of order n that lies in its first j columns.
inline double share_of_columns(index_t j, index_t n) { return double(j) / n * (double(j) / n); }

}  // namespace gpucholmod
